'use strict';
(function () {
  var root = document.documentElement, button = document.getElementById('theme');
  var all = JSON.parse(document.getElementById('plots').textContent);
  var items = all.plots;
  var switches = Array.prototype.slice.call(document.querySelectorAll('.switches'));
  var off = {}, drawn = [];
  function each(selector, act, inside) {
    Array.prototype.forEach.call((inside || document).querySelectorAll(selector), act);
  }

  // Plots: drawn when they are first seen, in colours of the style sheet.
  function paint(one) {
    var style = getComputedStyle(root);
    function colour(name) { return style.getPropertyValue(name).trim(); }
    one.layers.forEach(function (pair) {
      var layer = pair[0], renderer = pair[1], glyph = renderer.glyph;
      if (glyph.line_color && layer.width) { glyph.line_color = { value: colour(layer.colour) }; }
      if (layer.alpha) { glyph.fill_color = { value: colour(layer.fill || layer.colour) }; }
      renderer.visible = one.rows || !off[layer.colour];
    });
    one.plot.below.concat(one.plot.left).forEach(function (axis) {
      axis.axis_label_text_color = axis.major_tick_line_color = colour('--soft');
      axis.axis_line_color = axis.major_label_text_color = colour('--soft');
      axis.minor_tick_line_color = null;
    });
    one.plot.center.forEach(function (grid) { grid.grid_line_color = colour('--grid'); });
    if (one.rows) {
      var names = one.plot.left[0];
      names.major_label_text_color = colour('--ink');
      names.axis_line_color = names.major_tick_line_color = null;
    }
  }
  function repaint() { drawn.forEach(paint); }
  function layerOn(plot, layer) {
    var data = {};
    Object.keys(layer.data).forEach(function (name) { data[name] = all.columns[layer.data[name]]; });
    var wanted = {
      source: new Bokeh.ColumnDataSource({ data: data }), name: layer.name,
      level: layer.kind === 'quad' ? 'underlay' : 'glyph'
    };
    Object.keys(layer.data).forEach(function (name) {
      if (/^(x|y|left|right|top|bottom)[012]?$/.test(name)) { wanted[name] = { field: name }; }
    });
    if (layer.width) { wanted.line_width = layer.width; }
    if (layer.size) { wanted.size = layer.size; }
    if (layer.alpha) { wanted.fill_alpha = layer.alpha; }
    if (layer.kind === 'arrow') { wanted.marker = 'triangle'; wanted.angle = Math.PI / 2; }
    if (layer.kind === 'line') { wanted.line_dash = layer.dash; }
    if (layer.kind === 'quad') { wanted.line_color = null; }
    var renderer = plot[layer.kind === 'arrow' ? 'scatter' : layer.kind](wanted);
    // Else what the pointer is on, or near, would take colours of Bokeh's own.
    renderer.hover_glyph = renderer.muted_glyph = null;
    renderer.selection_glyph = renderer.nonselection_glyph = null;
    return renderer;
  }
  function draw(place) {
    var item = items[place.dataset.plot], rows = item && item.rows.length;
    if (!item) { return; }
    items[place.dataset.plot] = null;
    function range(ends) {
      return ends ? new Bokeh.Range1d({ start: ends[0], end: ends[1] })
        : new Bokeh.DataRange1d({ only_visible: true });
    }
    var plot = Bokeh.Plotting.figure({
      height: item.height, sizing_mode: 'stretch_width', match_aspect: item.plan,
      x_axis_type: item.log[0] ? 'log' : 'linear', y_axis_type: item.log[1] ? 'log' : 'linear',
      x_axis_label: item.labels[0], y_axis_label: item.labels[1], x_range: range(item.ranges[0]),
      y_range: range(rows ? [rows - 0.4, -0.6] : item.ranges[1]), tools: 'box_zoom,pan,reset,save',
      toolbar_location: 'above', background_fill_color: null, border_fill_color: null,
      outline_line_color: null, min_border_right: 16
    });
    plot.toolbar.logo = null;
    // A finger that scrolls the page must not zoom.
    plot.toolbar.active_drag = matchMedia('(pointer: coarse)').matches ? null
      : plot.toolbar.tools.find(function (tool) { return tool.type === 'BoxZoomTool'; });
    plot.below.concat(plot.left).forEach(function (axis) {
      axis.axis_label_text_font_style = 'normal';
      axis.axis_label_text_font_size = axis.major_label_text_font_size = '12px';
    });
    if (rows) {
      plot.left[0].ticker = new Bokeh.FixedTicker({ ticks: item.rows.map(function (_, n) { return n; }) });
      plot.left[0].major_label_overrides = new Map(item.rows.map(function (name, n) { return [n, name]; }));
      plot.center[1].visible = false;
    }
    if (item.log[0]) { markLog(plot.below[0], plot.center[0], plot.x_range, room(place.offsetWidth)); }
    if (item.log[1]) { markLog(plot.left[0], plot.center[1], plot.y_range, 9); }
    var layers = item.layers.map(function (layer) { return [layer, layerOn(plot, layer)]; });
    function those(wanted) {
      return layers.filter(function (pair) { return wanted(pair[0]); })
        .map(function (pair) { return pair[1]; });
    }
    if (item.layers.some(function (layer) { return layer.aside; })) {
      plot.x_range.renderers = plot.y_range.renderers = those(function (one) { return !one.aside; });
    }
    plot.add_tools(new Bokeh.HoverTool({
      // Labels are ours; Bokeh escapes the values, and its own table of both is too pale.
      tooltips: item.hover.map(function (row) {
        return '<div>' + (row[0] ? row[0] + ': ' : '') + '<b>' + row[1] + '</b></div>';
      }).join(''),
      visible: false, renderers: those(function (one) {
        return !one.aside && (one.kind === 'line' || one.kind === 'scatter');
      })
    }));
    var one = { plot: plot, layers: layers, rows: rows > 0 };
    drawn.push(one);
    paint(one);
    Bokeh.Plotting.show(plot, place).then(function () { nameTools(place); });
  }
  // Bokeh's tools can be reached by keyboard, but only their tooltips name them.
  function nameTools(inside) {
    each('*', function (element) {
      if (element.shadowRoot) { nameTools(element.shadowRoot); }
      if (element.classList.contains('bk-events')) { element.tabIndex = -1; }
      if (element.tabIndex === 0 && element.title) {
        element.setAttribute('role', 'button');
        element.setAttribute('aria-label', element.title);
      }
    }, inside);
  }
  // Ticks of a logarithmic axis: at least four, with as few digits as that allows.
  function logTicks(low, high, most) {
    var first = Math.floor(Math.log10(low)), last = Math.floor(Math.log10(high));
    var ticks = [];
    [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]].some(function (digits) {
      ticks = [];
      for (var exponent = first; exponent <= last; exponent++) {
        digits.forEach(function (digit) {
          var tick = Number(digit + 'e' + exponent);
          if (tick >= low && tick <= high) { ticks.push(tick); }
        });
      }
      return ticks.length >= 4;
    });
    if (ticks.length < 4) {
      // As on a linear axis.
      var step = Math.pow(10, Math.floor(Math.log10(high - low)));
      if ((high - low) / step < 4) { step /= (high - low) / step < 2 ? 5 : 2; }
      ticks = [];
      for (var n = Math.ceil(low / step); n * step <= high; n++) { ticks.push(n * step); }
    }
    var sparse = Math.ceil(ticks.length / most);
    return ticks.filter(function (_, n) { return n % sparse === 0; });
  }
  function room(width) { return Math.min(9, Math.max(4, Math.floor(width / 75))); }
  function logLabel(tick) {
    var exponent = Math.floor(Math.log10(tick) + 1e-9);
    var digits = Number((tick / Math.pow(10, exponent)).toPrecision(4));
    if (exponent > -5 && exponent < 5) { return String(Number(tick.toPrecision(4))); }
    var raised = String(exponent).replace(/./g, function (sign) {
      return sign === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[sign];
    });
    return (digits === 1 ? '' : digits + '·') + '10' + raised;
  }
  function markLog(axis, grid, ends, most) {
    var before = null;
    function mark() {
      var low = Math.min(ends.start, ends.end), high = Math.max(ends.start, ends.end);
      if (!(low > 0 && high > low && isFinite(high))) { return; }
      var ticks = logTicks(low, high, most);
      // New ticks change the layout, which sets the ends again.
      if (ticks.join() === before) { return; }
      before = ticks.join();
      // At once: labels and ticks of two ranges must not be mixed.
      axis.setv({
        ticker: new Bokeh.FixedTicker({ ticks: ticks }),
        major_label_overrides: new Map(ticks.map(function (tick) { return [tick, logLabel(tick)]; }))
      });
      grid.ticker = axis.ticker;
    }
    ends.change.connect(mark);
    mark();
  }
  function drawSeen() {
    each('[data-plot]', function (place) {
      if (!place.closest('details:not([open])')) { draw(place); }
    });
  }
  each('details', function (one) { one.addEventListener('toggle', drawSeen); });
  function open() {
    var target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var fold = target && target.querySelector('details.fold');
    if (fold) { fold.open = true; target.scrollIntoView(); }
  }
  window.addEventListener('hashchange', open);

  function choose() {
    each('.switches input', function (box) { box.checked = !off[box.value]; });
    repaint();
  }
  switches.forEach(function (form) {
    form.hidden = false;
    each('input', function (box) { off[box.value] = !box.checked; }, form);
    form.addEventListener('change', function (event) {
      off[event.target.value] = !event.target.checked;
      choose();
    });
    each('button', function (one) {
      one.addEventListener('click', function () {
        each('input', function (box) { off[box.value] = one.value === 'none'; }, form);
        choose();
      });
    }, form);
  });

  function dark() {
    var set = root.getAttribute('data-theme');
    return set ? set === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  function say() { button.textContent = dark() ? 'Light' : 'Dark'; repaint(); }
  button.hidden = false;
  say();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
  button.addEventListener('click', function () {
    root.setAttribute('data-theme', dark() ? 'light' : 'dark');
    say();
  });
  drawSeen();
  open();

  function plain(text) { return text.replace(/\s+/g, ' ').trim(); }
  function value(row, column) { return plain(row.cells[column].textContent); }
  function number(text) {
    // A p-value may be shown as < 0.001, an exponent have a minus of its own.
    var found = parseFloat(text.replace(/\u2212/g, '-').replace(/^< /, ''));
    return isNaN(found) ? Infinity : found;
  }
  document.querySelectorAll('table.runs, table.sorted').forEach(function (table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var sort = document.createElement('button');
      sort.type = 'button';
      while (head.firstChild) { sort.appendChild(head.firstChild); }
      head.appendChild(sort);
      head.setAttribute('aria-sort', 'none');
      sort.addEventListener('click', function () {
        var up = head.getAttribute('aria-sort') !== 'ascending', sign = up ? 1 : -1;
        heads.forEach(function (other) { other.setAttribute('aria-sort', 'none'); });
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        var numeric = head.classList.contains('n'), body = table.tBodies[0];
        var rows = Array.prototype.slice.call(body.rows).map(function (row) {
          var text = value(row, column);
          return { row: row, key: numeric ? number(text) : text };
        });
        rows.sort(function (a, b) {
          if (numeric) {
            // What is no number stays at the end, whichever way is sorted.
            if (a.key === Infinity || b.key === Infinity) {
              return a.key === b.key ? 0 : a.key === Infinity ? 1 : -1;
            }
            return sign * (a.key - b.key);
          }
          return sign * a.key.localeCompare(b.key, 'en', { numeric: true });
        });
        rows.forEach(function (one) { body.appendChild(one.row); });
      });
    });
  });

  var filters = document.querySelector('.filters');
  var rows = Array.prototype.slice.call(document.querySelectorAll('table.runs tbody tr'));
  var told = filters.querySelector('output');
  function filter() {
    var text = filters.querySelector('input').value.trim().toLowerCase(), shown = 0;
    var chosen = Array.prototype.slice.call(filters.querySelectorAll('select'));
    rows.forEach(function (row) {
      var fits = chosen.every(function (one) {
        return !one.value || value(row, Number(one.dataset.column)) === plain(one.value);
      }) && (!text || row.textContent.toLowerCase().indexOf(text) >= 0);
      row.hidden = !fits;
      shown += fits;
    });
    told.textContent = shown + ' of ' + rows.length + ' runs';
  }
  filters.hidden = false;
  filters.addEventListener('input', filter);
  filters.addEventListener('submit', function (event) { event.preventDefault(); });
  filter();
  var before;
  window.addEventListener('beforeprint', function () {
    before = root.getAttribute('data-theme');
    // A canvas keeps the width it has on the screen; A4 and Letter have 700 pixels beside margins.
    var place = document.querySelector('.plot');
    root.style.setProperty('--shrink', place ? Math.min(1, 700 / place.offsetWidth) : 1);
    root.setAttribute('data-theme', 'light');
    each('details.paper', function (one) { one.open = true; });
    repaint();
  });
  window.addEventListener('afterprint', function () {
    if (before) { root.setAttribute('data-theme', before); } else { root.removeAttribute('data-theme'); }
    repaint();
  });
})();
