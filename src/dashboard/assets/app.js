// What pages gain where scripts run: charts, copy buttons, pausing live parts, dropped files, the viewer's time zone.
"use strict";

(() => {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const grouped = new Intl.NumberFormat("en-US");
  const all = (selector, root = document) => root.querySelectorAll(selector);

  // ── The viewer's time zone, for the next page that the server renders
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`pw_zone=${encodeURIComponent(zone)}`))
    document.cookie = `pw_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  const showZone = (root) => {
    if (!zone || document.documentElement.dataset.zone !== "UTC" || zone === "UTC") return;
    for (const time of all("time[data-style]", root)) {
      const at = new Date(time.dateTime);
      const year = at.getFullYear() === new Date().getFullYear() ? "" : ` ${at.getFullYear()}`;
      const day = `${at.getDate()} ${MONTHS[at.getMonth()]}${year}`;
      const clock = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
      const isRelative = time.dataset.style === "relative" && /ago|^in /.test(time.textContent);
      const texts = { relative: isRelative ? time.textContent : day, full: `${day}, ${clock}`, day, clock };
      time.textContent = texts[time.dataset.style];
      const digits = (number) => String(number).padStart(2, "0");
      const date = [at.getFullYear(), digits(at.getMonth() + 1), digits(at.getDate())].join("-");
      time.title = `${date} ${at.toLocaleTimeString("en-GB", { timeStyle: "long" })}`;
    }
  };

  // ── Charts
  const plots = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => {
    if (value >= 1e6) return `${+(value / 1e6).toFixed(1)}M`;
    return value >= 1e4 ? `${+(value / 1e3).toFixed(1)}k` : grouped.format(value);
  };
  const dayLabel = (day) => `${Number(day.slice(8))} ${MONTHS[Number(day.slice(5, 7)) - 1]}`;
  const isWeekend = (day) => [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());

  const DAY_PIXELS_MIN = 4;

  /** Each series on top of those before it; null where none of them has data. */
  const stacked = (series, days) => {
    const sums = days.map((_, at) => (series.some(({ values }) => values[at] !== null) ? 0 : null));
    return series.map(({ values }) =>
      values.map((value, at) => {
        if (sums[at] !== null) sums[at] += value ?? 0;
        return sums[at];
      }),
    );
  };

  /** Shades weekends, puts a dash where nothing is known, and a line where something changed. */
  const markDays = (days, sums, markers) => (plot) => {
    const { ctx, bbox } = plot;
    const step = bbox.width / Math.max(1, days.length);
    ctx.save();
    ctx.fillStyle = colour("--weekend");
    days.forEach((day, at) => {
      if (!isWeekend(day)) return;
      const middle = plot.valToPos(at, "x", true);
      ctx.fillRect(Math.max(bbox.left, middle - step / 2), bbox.top, step, bbox.height);
    });
    ctx.fillStyle = colour("--line");
    days.forEach((_, at) => {
      if (sums.some((values) => values[at] !== null)) return;
      const width = Math.max(1, step * 0.4);
      ctx.fillRect(plot.valToPos(at, "x", true) - width / 2, bbox.top + bbox.height - 3, width, 2);
    });
    ctx.strokeStyle = colour("--accent");
    ctx.setLineDash([4, 4]);
    for (const { day } of markers) {
      const at = days.indexOf(day);
      if (at === -1) continue;
      const x = Math.round(plot.valToPos(at, "x", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };

  const tooltip = ({ days, series, markers, unit }) => {
    const box = document.createElement("div");
    box.className = "tip";
    box.hidden = true;
    return {
      hooks: {
        init: (plot) => plot.over.append(box),
        setCursor: (plot) => {
          const at = plot.cursor.idx;
          box.hidden = at === null || at === undefined || plot.cursor.left < 0;
          if (box.hidden) return;
          const lines = series.map(
            ({ title, values }) => `${title}: ${values[at] === null ? "no data" : grouped.format(values[at])}${unit}`,
          );
          const notes = markers.filter(({ day }) => day === days[at]).map(({ text }) => text);
          box.textContent = [dayLabel(days[at]), ...lines, ...notes].join("\n");
          const isRight = plot.cursor.left > plot.over.clientWidth / 2;
          box.style.left = isRight ? "" : `${plot.cursor.left + 12}px`;
          box.style.right = isRight ? `${plot.over.clientWidth - plot.cursor.left + 12}px` : "";
        },
      },
    };
  };

  const draw = (place) => {
    const chart = JSON.parse(place.dataset.chart);
    const { days, series, markers } = chart;
    const sums = stacked(series, days);
    // Between bars of a few pixels there is no room for a gap.
    const isDense = place.clientWidth / days.length < DAY_PIXELS_MIN;
    const paths = uPlot.paths.bars({ size: [isDense ? 1 : 0.78, 40], gap: 0 });
    const highest = Math.max(1, ...sums.flat().map((value) => value ?? 0));
    const text = colour("--soft");
    const axis = { stroke: text, font: "12px system-ui, sans-serif", ticks: { show: false }, gap: 6 };
    const options = {
      width: place.clientWidth,
      height: Math.max(180, Math.min(260, place.clientWidth * 0.4)),
      padding: [10, 14, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: [-0.5, days.length - 0.5] },
        y: { range: [0, highest * 1.05] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          values: (_plot, splits) => splits.map((at) => (Number.isInteger(at) && days[at] ? dayLabel(days[at]) : "")),
          space: 70,
          size: 30,
          incrs: [1, 2, 7, 14, 30, 61, 91, 182],
        },
        {
          ...axis,
          grid: { stroke: colour("--line"), width: 1 },
          values: (_plot, splits) => splits.map((value) => (Number.isInteger(value) ? short(value) : "")),
          size: (_plot, values) => Math.max(30, ...(values ?? []).map((value) => 14 + 7.4 * value.length)),
        },
      ],
      // The highest first, so that the lower ones are drawn over it.
      series: [
        {},
        ...series
          .map(({ title, kind }) => ({
            label: title,
            paths,
            points: { show: false },
            stroke: colour("--panel"),
            width: isDense ? 0 : 1,
            fill: colour(`--chart-${kind}`),
            spanGaps: false,
          }))
          .reverse(),
      ],
      plugins: [tooltip(chart), { hooks: { drawClear: markDays(days, sums, markers) } }],
    };
    plots.get(place)?.destroy();
    place.replaceChildren();
    plots.set(place, new uPlot(options, [days.map((_, at) => at), ...sums.reverse()], place));
  };

  const showCharts = (root = document) => {
    if (typeof uPlot === "undefined") return;
    for (const place of plots.keys()) if (!place.isConnected) plots.delete(place);
    for (const place of all("[data-chart]", root)) {
      place.hidden = false;
      draw(place);
    }
  };

  // ── Copy buttons
  const enable = (root = document) => {
    for (const button of all("button[data-copy], button[data-pause], button[data-print]", root)) button.hidden = false;
  };

  const copy = async (button) => {
    const label = button.querySelector("span");
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = "Copied";
    } catch {
      // Without HTTPS the browser has no clipboard: mark the text, so that the keyboard can copy it.
      const code = button.parentElement?.querySelector("code, .mono");
      if (code) getSelection()?.selectAllChildren(code);
      label.textContent = "Press Ctrl+C";
    }
    button.classList.add("done");
    setTimeout(() => {
      label.textContent = before;
      button.classList.remove("done");
    }, 2000);
  };

  // ── Live parts
  const togglePause = (button) => {
    const part = button.closest("[data-live]");
    const isPaused = part.toggleAttribute("data-paused");
    button.setAttribute("aria-pressed", String(isPaused));
    button.querySelector("span").textContent = isPaused ? "Resume updates" : "Pause updates";
  };

  document.addEventListener("htmx:before:request", (event) => {
    const part = event.target.closest?.("[data-live]");
    // An open menu stays under the hand.
    if (part && (document.hidden || part.hasAttribute("data-paused") || part.querySelector(".row-menu[open]")))
      event.preventDefault();
  });
  document.addEventListener("htmx:after:swap", () => {
    enable();
    showZone(document);
    showCharts();
  });

  // ── Menus of rows: one is open at a time, until a click elsewhere or Escape
  const closeMenus = (except) => {
    for (const menu of all(".row-menu[open]")) if (menu !== except) menu.open = false;
  };
  document.addEventListener("click", (event) => closeMenus(event.target.closest?.(".row-menu")));
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" ? document.activeElement?.closest(".row-menu[open]") : null;
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  // ── Texts that are cut are whole on hover
  document.addEventListener("mouseover", (event) => {
    const cut = event.target.closest?.("td .cut, td .second, td.main > a");
    if (cut && !cut.title && cut.scrollWidth > cut.clientWidth) cut.title = cut.textContent.trim();
  });

  // ── Printing: with everything that is folded, and by a button
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...all("main details:not([open], .row-menu)")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });

  // ── Clicks
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (button?.dataset.copy !== undefined) void copy(button);
    if (button?.dataset.pause !== undefined) togglePause(button);
    if (button?.dataset.print !== undefined) print();
  });

  // ── Choices that submit their form, and boxes that tick all others
  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.dataset?.submit !== undefined) target.form?.requestSubmit();
    if (target.dataset?.all !== undefined)
      for (const box of all(`input[type=checkbox][name="${target.dataset.all}"]`)) box.checked = target.checked;
    if (target.type === "file") showFiles(target);
  });

  // ── Dropped files
  /** Refuses files that the server would refuse after they were sent. */
  const refuseTooLarge = (input, box) => {
    const warning = box.querySelector("[data-too-large]");
    if (!warning) return;
    const isTooLarge = [...input.files].some(({ size }) => size > Number(box.dataset.bytesMax));
    warning.hidden = !isTooLarge;
    input.setCustomValidity(isTooLarge ? warning.textContent : "");
  };

  const showFiles = (input) => {
    const box = input.closest("[data-drop]");
    const names = box?.querySelector("[data-files]");
    if (names) names.textContent = [...input.files].map(({ name }) => name).join(", ");
    if (box) refuseTooLarge(input, box);
  };

  // ── Forms that change something: a second press does nothing, and what takes longer says so
  const BUSY_AFTER_MS = 300;
  const SENDING_MS_MAX = 60_000;

  const settle = (form, button) => {
    delete form.dataset.sending;
    if (button?.dataset.label === undefined) return;
    button.textContent = button.dataset.label;
    delete button.dataset.label;
    button.removeAttribute("aria-disabled");
  };

  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (event.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sending !== undefined) {
      event.preventDefault();
      return;
    }
    form.dataset.sending = "";
    const isUpload = form.hasAttribute("data-upload");
    const button = submitter ?? form.querySelector("button");
    const showBusy = () => {
      if (!button || form.dataset.sending === undefined) return;
      button.dataset.label = button.textContent;
      button.textContent = isUpload ? "Uploading…" : "Working…";
      button.setAttribute("aria-disabled", "true");
    };
    setTimeout(showBusy, isUpload ? 0 : BUSY_AFTER_MS);
    // An upload takes as long as the line is slow; anything else can be tried again.
    if (!isUpload) setTimeout(() => settle(form, button), SENDING_MS_MAX);
  });
  // ── What was typed into a form comes back after signing in, where its session had ended
  const TYPED = "pw_typed";
  const TYPED_MS_MAX = 1_800_000;
  const TYPED_CHARACTERS_MAX = 200_000;
  const isSignIn = location.pathname.startsWith("/sign-in");
  // A browser that keeps no data throws at this name, and one whose storage is full at `setItem`.
  const storage = (() => {
    try {
      return sessionStorage;
    } catch {
      return null;
    }
  })();
  const keepTyped = (typed) => {
    try {
      storage?.setItem(TYPED, typed);
    } catch {
      // What was typed does not come back then.
    }
  };
  const typedFields = (form) =>
    [...form.elements].filter(({ name, type }) => name && !["hidden", "password", "file", "submit"].includes(type));

  document.addEventListener("submit", (event) => {
    const { target: form } = event;
    if (event.defaultPrevented || form.method !== "post" || isSignIn) return;
    const fields = typedFields(form).filter(({ type, checked }) => checked || !["checkbox", "radio"].includes(type));
    const values = fields.map(({ name, value }) => [name, value]);
    const typed = JSON.stringify({ page: location.pathname, action: form.action, values, atMs: Date.now() });
    if (typed.length <= TYPED_CHARACTERS_MAX) keepTyped(typed);
  });

  const restoreTyped = () => {
    const typed = JSON.parse(storage?.getItem(TYPED) ?? "null");
    if (typed === null) return;
    // Any other page than the sign-in means that the form was sent.
    if (isSignIn) return keepTyped(JSON.stringify({ ...typed, isUnsent: true }));
    storage.removeItem(TYPED);
    if (!typed.isUnsent || typed.page !== location.pathname || Date.now() - typed.atMs > TYPED_MS_MAX) return;
    const form = [...all("form[method=post]")].find(({ action }) => action === typed.action);
    for (const field of form ? typedFields(form) : []) {
      const values = typed.values.filter(([name]) => name === field.name).map(([, value]) => value);
      if (["checkbox", "radio"].includes(field.type)) field.checked = values.includes(field.value);
      else if (values.length > 0) [field.value] = values;
    }
  };
  restoreTyped();

  // A page that the browser kept, when somebody goes back to it.
  addEventListener("pageshow", () => {
    for (const form of all("form[data-sending]")) settle(form, form.querySelector("button[data-label]"));
    for (const button of all("button[data-label]")) if (button.form) settle(button.form, button);
  });

  for (const zoneOfDrop of all("[data-drop]")) {
    const input = zoneOfDrop.querySelector("input[type=file]");
    const mark = (isOver) => (event) => {
      event.preventDefault();
      zoneOfDrop.classList.toggle("over", isOver);
    };
    zoneOfDrop.addEventListener("dragover", mark(true));
    zoneOfDrop.addEventListener("dragleave", mark(false));
    zoneOfDrop.addEventListener("drop", (event) => {
      mark(false)(event);
      if (event.dataTransfer.files.length === 0) return;
      input.files = event.dataTransfer.files;
      showFiles(input);
      if (zoneOfDrop.dataset.drop === "submit") input.form.requestSubmit();
    });
  }

  // ── Search (Ctrl-K): its page in a dialog
  const FOUND_LINKS = "#found a[href]";

  const openSearch = async (link) => {
    const onPage = document.querySelector("#search input[type=search]");
    if (onPage) return onPage.focus();
    // Another key press while the page is loading opens no second one.
    if (document.querySelector("dialog.search")) return;
    const dialog = document.createElement("dialog");
    dialog.className = "search";
    dialog.setAttribute("aria-label", "Search");
    document.body.append(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    const response = await fetch(link.href).catch(() => null);
    const page = new DOMParser().parseFromString((await response?.text()) ?? "", "text/html");
    const search = page.querySelector("#search");
    // The session has ended, or the service is away: the page says so.
    if (!search) return location.assign(link.href);
    dialog.append(search);
    htmx.process(dialog);
    dialog.showModal();
    dialog.querySelector("input[type=search]").focus();
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-search]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    void openSearch(link);
  });
  document.addEventListener("keydown", (event) => {
    const link = document.querySelector("[data-search]");
    if (
      link &&
      event.key.toLowerCase() === "k" &&
      (event.ctrlKey || event.metaKey) &&
      !event.shiftKey &&
      !event.altKey
    ) {
      event.preventDefault();
      void openSearch(link);
    }
    const search = event.target.closest?.("#search");
    if (!search || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    const stops = [search.querySelector("input[type=search]"), ...all(FOUND_LINKS, search)];
    const next = stops[stops.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  // ── What the script for sign-up forms found out, where one tries it
  addEventListener("postwarden", ({ target, detail }) => {
    const tried = target.form?.querySelector("[data-tried]");
    if (!tried) return;
    const { verdict, sub_status: reason } = detail;
    tried.textContent = verdict ? `${verdict}: ${reason}` : "Nothing speaks against this address so far.";
  });

  enable();
  showZone(document);
  showCharts();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    showCharts();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showCharts());
})();
