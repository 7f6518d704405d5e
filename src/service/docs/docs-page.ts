import { createHash } from "node:crypto";
import { nextTurn } from "../../foundation/base/clock.ts";
import { html, type Markup, trustedMarkup } from "../../foundation/http/html.ts";
import { type ApiDocument, apiDocumentSchema, type DocumentedOperation, operationsOf } from "./api-document.ts";
import { KEY_VARIABLE } from "./curl-example.ts";
import type { Page } from "./docs-response.ts";
import { eventArticle, operationLink, operationArticle } from "./operation-view.ts";
import { prose, schemaAnchor, schemaTable } from "./schema-view.ts";

/** The style sheet of the page: light and dark, wide and narrow. */
const PAGE_STYLE = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2330;--soft:#5a6577;--line:#dde2ea;--panel:#f5f7fa;--link:#0b57c4;--get:#0a6b3d;--post:#8a4b00;--patch:#6a3fb5;--delete:#b3261e}
@media(prefers-color-scheme:dark){:root{--bg:#12161d;--fg:#e4e8ef;--soft:#9aa6b8;--line:#2b3340;--panel:#1a202a;--link:#8ab8ff;--get:#5fd39a;--post:#f0b357;--patch:#bda0ff;--delete:#ff8b82}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}
a{color:var(--link)}h3 a,nav a{color:inherit;text-decoration:none}h3 a:hover,nav a:hover{text-decoration:underline}
.layout{display:grid;grid-template-columns:19rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;border-right:1px solid var(--line);font-size:.875rem}
nav ul{list-style:none;margin:.25rem 0 1rem;padding:0}nav li a{display:block;padding:.2rem 0 .2rem 3.2rem;text-indent:-3.2rem}nav h2{font-size:.875rem;margin:0}
nav .m{display:inline-block;width:3.2rem;text-indent:0;font-size:.7rem}#nav-events li a{padding-left:0;text-indent:0}
main{padding:1rem 2rem 4rem;max-width:60rem}
h1{margin:0 0 .5rem;font-size:1.6rem}h2{margin:2.5rem 0 .25rem}h3{margin:0 0 .25rem;font-size:1.15rem}h4{margin:1rem 0 .25rem}
article{border-top:1px solid var(--line);padding:1.25rem 0}
code,pre{font:.875em/1.45 ui-monospace,monospace}pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.75rem;overflow:auto;max-height:28rem;margin:.5rem 0}
.path code{font-size:1rem}.m{font:700 .8rem ui-monospace,monospace}.get{color:var(--get)}.post{color:var(--post)}.patch{color:var(--patch)}.delete{color:var(--delete)}
.s2{color:var(--get)}.s4{color:var(--delete)}
small,.limits,.values,.soft{color:var(--soft);font-size:.85rem;font-weight:400}.limits,.values{margin:.15rem 0 0}.access{margin-left:.5rem}
details{margin:.4rem 0}summary{cursor:pointer;padding:.2rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);font-weight:400}thead th{color:var(--soft)}td.type{white-space:nowrap}
input{width:100%;padding:.5rem;font:inherit;color:inherit;background:var(--panel);border:1px solid var(--soft);border-radius:6px}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
[hidden]{display:none}
@media(max-width:800px){.layout{display:block}nav{position:static;height:auto;max-height:45vh;border-right:0;border-bottom:1px solid var(--line)}main{padding:1rem}td.type{white-space:normal}th,td{padding-right:.5rem}nav li a{padding-top:.5rem;padding-bottom:.5rem}summary{padding:.5rem 0}}
@media print{nav{display:none}.layout{display:block}}
`;

/** Filters articles and links by the words in the box. Without it the page shows everything. */
const PAGE_SCRIPT = `
const box=document.getElementById("filter"),none=document.getElementById("none");
const groups=[...document.querySelectorAll("section")].map((section)=>({section,group:document.getElementById("nav-"+section.id),items:[...section.querySelectorAll("article")].map((article)=>({article,link:document.querySelector('nav a[href="#'+CSS.escape(article.id)+'"]'),text:[...article.children].slice(0,3).map((part)=>part.textContent).join(" ").toLowerCase()}))}));
const apply=()=>{
const words=box.value.toLowerCase().split(/\\s+/).filter(Boolean);let shown=0;
for(const{section,group,items}of groups){let some=false;
for(const{article,link,text}of items){const fits=words.every((word)=>text.includes(word));article.hidden=!fits;if(link)link.parentElement.hidden=!fits;some||=fits;shown+=fits}
section.hidden=!some;if(group)group.hidden=!some}
none.hidden=shown>0};
box.closest("p").hidden=false;box.addEventListener("input",apply);
addEventListener("keydown",(event)=>{if(event.key==="/"&&document.activeElement!==box){event.preventDefault();box.focus()}});
addEventListener("hashchange",()=>{const target=document.getElementById(decodeURIComponent(location.hash.slice(1)));if(target&&target.closest("[hidden]")){box.value="";apply();target.scrollIntoView()}});
apply();
`;

const sourceHash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Nothing but the style and the script of the page itself: no other resource, no form, no frame. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src ${sourceHash(PAGE_STYLE)}`,
  `script-src ${sourceHash(PAGE_SCRIPT)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Exactly the text that the policy has the hash of. */
const STYLE_ELEMENT = trustedMarkup(`<style>${PAGE_STYLE}</style>`);
const SCRIPT_ELEMENT = trustedMarkup(`<script>${PAGE_SCRIPT}</script>`);

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** A section of the page with its part of the table of contents. */
interface Section {
  readonly id: string;
  readonly title: string;
  readonly intro: string;
  readonly links: readonly Markup[];
  readonly articles: readonly Markup[];
}

const anchorOf = (title: string): string => title.toLowerCase().replaceAll(" ", "-");

/** One tag. Operations are rendered in turns of their own, so that the event loop is not held. */
const tagSection = async (
  document: ApiDocument,
  tag: ApiDocument["tags"][number],
  operations: readonly DocumentedOperation[],
): Promise<Section> => {
  const own = operations.filter(({ tags }) => tags[0] === tag.name);
  const articles: Markup[] = [];
  for (const operation of own) {
    articles.push(operationArticle(document, operation));
    await nextTurn();
  }
  return {
    id: anchorOf(tag.name),
    title: tag.name,
    intro: tag.description ?? "",
    links: own.map(operationLink),
    articles,
  };
};

const eventSection = async (document: ApiDocument): Promise<Section> => {
  const articles: Markup[] = [];
  for (const [type, { post }] of Object.entries(document.webhooks)) {
    articles.push(eventArticle(document, type, post));
    await nextTurn();
  }
  return {
    ...{ id: "events", title: "Webhook events", articles },
    intro: "Sent to your webhook URLs as POST, signed by Standard Webhooks 1.0. Respond with 2xx within 15 seconds.",
    links: Object.keys(document.webhooks).map((type) => html`<li><a href="#event-${type}">${type}</a></li>`),
  };
};

const schemaSection = async (document: ApiDocument): Promise<Section> => {
  const articles: Markup[] = [];
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    articles.push(
      html`<article id="${schemaAnchor(name)}">
        <h3>${name}</h3>
        <p>${prose(schema.description)}</p>
        ${schemaTable(schema)}
      </article> `,
    );
    await nextTurn();
  }
  return { id: "schemas", title: "Schemas", intro: "The objects that several operations share.", links: [], articles };
};

const sectionView = ({ id, title, intro, articles }: Section): Markup =>
  html`<section id="${id}">
    <h2>${title}</h2>
    <p class="soft">${prose(intro)}</p>
    ${articles}
  </section>`;

const sectionLinks = ({ id, title, links }: Section): Markup =>
  html`<div id="nav-${id}">
    <h2><a href="#${id}">${title}</a></h2>
    <ul>
      ${links}
    </ul>
  </div>`;

const introOf = ({ info, servers }: ApiDocument): Markup =>
  html`<h1>${info.title} API</h1>
    <p>
      ${info.description} Version ${info.version}. The same as OpenAPI 3.1: <a href="/openapi.json">/openapi.json</a>.
    </p>
    <p>
      Base URL: <code>${servers[0].url}</code>. Send your API key as <code>Authorization: Bearer KEY</code>. The
      examples take it from a variable:
    </p>
    <pre tabindex="0"><code>export ${KEY_VARIABLE}=pw_test_…</code></pre>
    <p>A test key (<code>pw_test_…</code>) has the same operations without network access or credits.</p>`;

/** The page for an OpenAPI document: one file without other resources, readable without JavaScript. */
export const renderDocsPage = async (openApi: unknown): Promise<Page> => {
  const document = apiDocumentSchema.parse(openApi);
  const operations = operationsOf(document);
  const sections: Section[] = [];
  for (const tag of document.tags) sections.push(await tagSection(document, tag, operations));
  sections.push(await eventSection(document), await schemaSection(document));
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width,initial-scale=1" />
        <title>${document.info.title} API</title>
        <link rel="icon" href="data:," />
        ${STYLE_ELEMENT}
      </head>
      <body>
        <div class="layout">
          <nav aria-label="Operations">
            <p hidden>
              <label
                >Filter <input id="filter" type="search" placeholder="verify, POST, dmarc… ( / )" autocomplete="off"
              /></label>
            </p>
            <p id="none" hidden>Nothing matches.</p>
            ${sections.map(sectionLinks)}
          </nav>
          <main>${introOf(document)}${sections.map(sectionView)}</main>
        </div>
        ${SCRIPT_ELEMENT}
      </body>
    </html> `;
  return { text: page.text, headers: HEADERS };
};
