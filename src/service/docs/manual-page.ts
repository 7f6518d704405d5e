import { assetPath } from "../../dashboard/frame.tsx";
import { html, type Markup, trustedMarkup } from "../../foundation/http/html.ts";
import type { Page } from "./docs-response.ts";
import { type Guide, GUIDES } from "./guides.ts";

export type ManualSection = "Guides" | "Reference";

/** A page of the manual, before the frame is put around it. */
export interface ManualPage {
  readonly slug: string;
  readonly title: string;
  readonly section: ManualSection;
  /** Whether the lists at the left have it; others are reached from their index. */
  readonly isListed: boolean;
  /** What the search finds: every word, or only the headings. */
  readonly search: "words" | "titles";
  /** From the heading of the page on. */
  readonly body: Markup;
}

/** A heading with an anchor. */
export interface Heading {
  readonly level: number;
  readonly anchor: string;
  readonly title: string;
}

const HEADING = /<h([23]) id="([^"]+)">(.*?)<\/h\1>/gs;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'" };

/** Markup as the text that a reader sees. */
export const textOf = (markup: string): string =>
  markup
    .replaceAll(/<[^<>]+>/g, "")
    .replaceAll(/&([a-z]+|#39|#x27);/g, (entity, name: string) => ENTITIES[name] ?? entity)
    .trim();

export const headingsOf = ({ text }: Markup): readonly Heading[] =>
  [...text.matchAll(HEADING)].map(([, level = "2", anchor = "", inner = ""]) => ({
    level: Number(level),
    anchor,
    title: textOf(inner),
  }));

/** A page from Markdown. Links to other guides lead to their pages; markup in the text is shown as text. */
export const markdownPage = ({ slug, title, text }: Guide, section: ManualSection): ManualPage => {
  const rendered = Bun.markdown.html(text, { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true });
  const body = rendered
    .replaceAll(/href="([a-z0-9-]+)\.md(#[^"]*)?"/g, 'href="/docs/$1$2"')
    .replaceAll("<table>", '<div class="scroll" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>")
    .replaceAll("<pre>", '<pre tabindex="0">')
    .replace(/<h1 id="[^"]*">/, "<h1>");
  return { slug, title, section, isListed: true, search: "words", body: trustedMarkup(body) };
};

export const guidePages = (): readonly ManualPage[] => GUIDES.map((guide) => markdownPage(guide, "Guides"));

const introOf = ({ text }: Markup): string =>
  textOf(text.split("<p>", 2)[1]?.split("</p>", 1)[0] ?? "").split(/(?<=\.)\s/)[0] ?? "";

/** The first page: what there is to read. */
export const overviewPage = (pages: readonly ManualPage[]): ManualPage => {
  const list = (section: ManualSection): Markup =>
    html`<h2 id="${section.toLowerCase()}">${section}</h2>
      <ul>
        ${pages
          .filter((page) => page.isListed && page.section === section)
          .map(
            ({ slug, title, body }) =>
              html`<li><a href="/docs/${slug}">${title}</a> <span class="soft">${introOf(body)}</span></li> `,
          )}
      </ul>`;
  const body = html`<h1>Manual</h1>
    ${list("Guides")}${list("Reference")}`;
  return { slug: "", title: "Manual", section: "Guides", isListed: false, search: "titles", body };
};

/** What stands where there is no page. */
export const missingPage = (): ManualPage => ({
  slug: "not-found",
  title: "No such page",
  section: "Guides",
  isListed: false,
  search: "titles",
  body: html`<h1>No such page</h1>
    <p>
      The manual has no page at this address. Search for it, choose one from the contents, or go to the
      <a href="/docs">first page</a>.
    </p>`,
});

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
};

const linkTo = ({ slug, title }: ManualPage, current: ManualPage): Markup => {
  const isCurrent = slug === current.slug || (slug === "reference-api" && current.slug.startsWith("reference-api"));
  return html`<li><a href="/docs/${slug}" ${isCurrent && trustedMarkup(' aria-current="page"')}>${title}</a></li> `;
};

const listOf = (section: ManualSection, pages: readonly ManualPage[], current: ManualPage): Markup =>
  html`<p class="list-title">${section}</p>
    <ul>
      ${pages.filter((page) => page.isListed && page.section === section).map((page) => linkTo(page, current))}
    </ul>`;

/** The sections of a page: at its right, and folded above its text where there is no room; neither without sections. */
const contentsOf = (page: ManualPage) => {
  const headings = headingsOf(page.body).filter(({ level, anchor }) => level === 2 && anchor !== "");
  const list = html`<ul>
    ${headings.map(({ anchor, title }) => html`<li><a href="#${anchor}">${title}</a></li> `)}
  </ul>`;
  return {
    aside:
      headings.length > 0 &&
      html`<nav aria-labelledby="on-this-page">
        <p class="list-title" id="on-this-page">On this page</p>
        ${list}
      </nav>`,
    folded:
      headings.length > 0 &&
      html`<details class="on-this-page">
        <summary>On this page</summary>
        <nav aria-label="On this page">${list}</nav>
      </details>`,
  };
};

/** Every heading links to itself. */
const withAnchors = ({ text }: Markup): Markup =>
  trustedMarkup(
    text.replaceAll(
      HEADING,
      (_, level: string, anchor: string, inner: string) =>
        `<h${level} id="${anchor}">${inner} <a class="anchor" href="#${anchor}" aria-label="Link to ${Bun.escapeHTML(textOf(inner))}">#</a></h${level}>`,
    ),
  );

/** Pages at the left, the page in the middle, its sections at the right. It can be read without scripts; only the search needs one. */
export const renderManualPage = (page: ManualPage, pages: readonly ManualPage[]): Page => {
  const contents = contentsOf(page);
  const lists = html`${listOf("Guides", pages, page)}${listOf("Reference", pages, page)}`;
  const document = html`<!doctype html>
    <html lang="en" data-theme="auto">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${page.slug === "" ? "Postwarden manual" : `${page.title} · Postwarden manual`}</title>
        <link rel="icon" type="image/svg+xml" href="${assetPath("favicon.svg")}" />
        <link rel="stylesheet" href="${assetPath("style.css")}" />
        <link rel="stylesheet" href="${assetPath("manual.css")}" />
        <script src="${assetPath("manual.js")}"></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <div class="manual">
          <header class="manual-side">
            <p>
              <a class="brand" href="/docs"
                ><img src="${assetPath("favicon.svg")}" alt="" width="24" height="24" /> Postwarden</a
              >
            </p>
            <div id="search" role="search" data-index="${assetPath("manual-index.json")}" hidden>
              <input
                type="search"
                placeholder="Search the manual"
                aria-label="Search the manual"
                aria-controls="found"
                autocomplete="off"
              />
              <p class="unseen" role="status"></p>
              <ul id="found"></ul>
            </div>
            <nav class="lists" aria-label="Manual">${lists}</nav>
            <details class="menu">
              <summary class="button">Contents</summary>
              <nav aria-label="Contents">${lists}</nav>
            </details>
          </header>
          <main id="main" tabindex="-1">
            ${page.slug !== "" && html`<p class="crumb"><a href="/docs">Manual</a></p>`} ${contents.folded}
            ${withAnchors(page.body)}
          </main>
          <aside class="manual-aside" aria-label="On this page">
            ${contents.aside}
            <p><a class="back" href="/">← Back to the dashboard</a></p>
          </aside>
        </div>
      </body>
    </html> `;
  return { text: document.text, headers: HEADERS };
};
