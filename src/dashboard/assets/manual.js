// What the manual gains where scripts run: the search, copy buttons, the section in view, the colours chosen in the dashboard.
"use strict";

(() => {
  const theme = /(?:^|; )pw_theme=(dark|light)/.exec(document.cookie)?.[1];
  if (theme) document.documentElement.dataset.theme = theme;

  const FOUND_MAX = 12;
  const BASE = 36;
  const POINTS = { title: 10, start: 6, page: 3, word: 2, part: 1 };

  // ── Search
  let index = null;

  const readWords = (text) => {
    let word = "";
    return text.split(" ").map((entry) => {
      const at = entry.indexOf(":");
      word = word.slice(0, parseInt(entry[0], BASE)) + entry.slice(1, at);
      let section = 0;
      const sections = entry
        .slice(at + 1)
        .split(",")
        .map((distance) => (section += parseInt(distance, BASE)));
      return { word, sections };
    });
  };

  const anchorOf = (title) =>
    title
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, "")
      .replaceAll(" ", "-");

  const loadIndex = async (path) => {
    const { pages, sections, words } = await (await fetch(path)).json();
    return {
      words: readWords(words),
      sections: sections.map(([page, title, anchor = anchorOf(title)]) => {
        const [slug, pageTitle] = pages[page];
        const href = `/docs${slug && `/${slug}`}${anchor && `#${anchor}`}`;
        return { href, title, pageTitle, isPage: anchor === "", text: `${title} ${anchor}`.toLowerCase() };
      }),
    };
  };

  /** The points of each section for one word of the query. */
  const pointsOf = (term) => {
    const points = new Map();
    const add = (section, more) => points.set(section, Math.max(points.get(section) ?? 0, more));
    index.sections.forEach(({ text, pageTitle, isPage }, at) => {
      const found = text.indexOf(term);
      if (found !== -1)
        add(at, (/[a-z0-9]/.test(text[found - 1] ?? "") ? POINTS.start : POINTS.title) + (isPage ? POINTS.page : 0));
      else if (pageTitle.toLowerCase().includes(term)) add(at, POINTS.part);
    });
    for (const { word, sections } of index.words) {
      if (!word.startsWith(term)) continue;
      for (const section of sections) add(section, word === term ? POINTS.word : POINTS.part);
    }
    return points;
  };

  /** Sections that have every word, the best first. */
  const find = (query) => {
    const terms = query
      .toLowerCase()
      .split(/[^\p{L}\p{N}_]+/u)
      .filter(Boolean);
    if (terms.length === 0) return [];
    const [first, ...others] = terms.map(pointsOf);
    return [...first]
      .filter(([at]) => others.every((points) => points.has(at)))
      .map(([at, points]) => [at, others.reduce((sum, more) => sum + more.get(at), points)])
      .sort(([a, x], [b, y]) => y - x || a - b)
      .slice(0, FOUND_MAX)
      .map(([at]) => index.sections[at]);
  };

  const itemOf = ({ href, title, pageTitle }) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = href;
    link.textContent = title;
    if (title !== pageTitle) {
      const page = document.createElement("small");
      page.textContent = pageTitle;
      link.append(page);
    }
    item.append(link);
    return item;
  };

  const startSearch = (place) => {
    const [box, status, list] = place.querySelectorAll("input, [role=status], ul");
    const lists = document.querySelectorAll(".lists, .menu");
    const links = () => [...list.querySelectorAll("a")];
    place.hidden = false;
    const show = async () => {
      const query = box.value.trim();
      if (query !== "") index ??= await loadIndex(place.dataset.index);
      if (query !== box.value.trim()) return;
      const found = query === "" ? [] : find(query);
      list.replaceChildren(...found.map(itemOf));
      status.textContent = query === "" ? "" : found.length === 0 ? "Nothing found." : `${found.length} found.`;
      status.classList.toggle("unseen", query === "" || found.length > 0);
      for (const other of lists) other.hidden = query !== "";
    };
    box.addEventListener("input", show);
    place.addEventListener("keydown", (event) => {
      const all = links();
      const at = all.indexOf(document.activeElement);
      if (event.key === "Escape") {
        box.value = "";
        box.focus();
        void show();
      } else if (event.key === "ArrowDown") (all[at + 1] ?? all[at])?.focus();
      else if (event.key === "ArrowUp") (at > 0 ? all[at - 1] : box).focus();
      else if (event.key === "Enter" && at === -1) all[0]?.click();
      else return;
      event.preventDefault();
    });
    // Of a link on this page, the lists come back.
    list.addEventListener("click", () => {
      box.value = "";
      void show();
    });
    document.addEventListener("keydown", (event) => {
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
      const isCalled = (event.key === "/" && !isTyping) || (event.key === "k" && (event.ctrlKey || event.metaKey));
      if (!isCalled) return;
      event.preventDefault();
      box.focus();
    });
  };

  // ── Copy buttons
  const addCopyButton = (pre) => {
    const place = document.createElement("div");
    place.className = "code";
    pre.replaceWith(place);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent.trimEnd());
        button.textContent = "copied";
      } catch {
        // Without HTTPS the browser has no clipboard: mark the text, so that the keyboard can copy it.
        getSelection()?.selectAllChildren(pre);
        button.textContent = "press Ctrl+C";
      }
      setTimeout(() => {
        button.textContent = "copy";
      }, 2000);
    });
    place.append(pre, button);
  };

  // ── The section in view
  const followSections = () => {
    const links = new Map(
      [...document.querySelectorAll(".manual-aside nav a")].map((link) => [link.hash.slice(1), link]),
    );
    const headings = [...document.querySelectorAll("main h2[id]")].filter(({ id }) => links.has(id));
    const mark = () => {
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
      const current = passed.at(-1) ?? headings[0];
      for (const [id, link] of links) {
        if (id === current?.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  };

  // ── The way back leads to the page that the reader came from, in its mode
  const leadBack = () => {
    const link = document.querySelector(".back");
    const from = document.referrer.startsWith(`${location.origin}/`) ? new URL(document.referrer) : null;
    const isManual = from?.pathname === "/docs" || from?.pathname.startsWith("/docs/");
    try {
      if (from && !isManual) sessionStorage.setItem("pw_back", from.pathname + from.search);
      const back = sessionStorage.getItem("pw_back");
      if (link && back) link.href = back;
    } catch {
      // Without storage the way back is the home page.
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    leadBack();
    const place = document.getElementById("search");
    if (place) startSearch(place);
    for (const pre of document.querySelectorAll("main pre")) addCopyButton(pre);
    followSections();
  });
})();
