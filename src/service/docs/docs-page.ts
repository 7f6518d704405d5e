import { createHash } from "node:crypto";
import { nextTurn } from "../../foundation/base/clock.ts";
import { html, type Markup, trustedMarkup } from "../../foundation/http/html.ts";
import { type ApiDocument, apiDocumentSchema, type DocumentedOperation, operationsOf } from "./api-document.ts";
import { KEY_VARIABLE } from "./curl-example.ts";
import type { Page } from "./docs-response.ts";
import { eventArticle, operationLink, operationArticle } from "./operation-view.ts";
import { PAGE_SCRIPT, PAGE_STYLE } from "./page-assets.ts";
import { prose, schemaAnchor, schemaTable } from "./schema-view.ts";

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
