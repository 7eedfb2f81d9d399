'use strict';
(function () {
  var root = document.documentElement, button = document.getElementById('theme');
  function dark() {
    var set = root.getAttribute('data-theme');
    return set ? set === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  function say() { button.textContent = dark() ? 'Light' : 'Dark'; }
  button.hidden = false;
  say();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
  button.addEventListener('click', function () {
    root.setAttribute('data-theme', dark() ? 'light' : 'dark');
    say();
  });

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
  window.addEventListener('beforeprint', function () {
    // Parameters and notes of single runs would be dozens of sheets.
    document.querySelectorAll('.notes details').forEach(function (one) { one.open = true; });
  });
})();
