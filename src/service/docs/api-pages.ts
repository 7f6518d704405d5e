import { nextTurn } from "../../foundation/base/clock.ts";
import { html, type Markup, trustedMarkup } from "../../foundation/http/html.ts";
import { type ApiDocument, apiDocumentSchema, type DocumentedOperation, operationsOf } from "./api-document.ts";
import { KEY_VARIABLE } from "./curl-example.ts";
import type { ManualPage } from "./manual-page.ts";
import { eventArticle, methodBadge, operationArticle } from "./operation-view.ts";
import { prose, schemaAnchor, schemaTable } from "./schema-view.ts";

const API = "reference-api";
const EVENTS = "reference-events";

const slugOf = (tag: string): string => `${API}-${tag.toLowerCase().replaceAll(" ", "-")}`;

/** The operations of a tag, or the events, with the page that they are on. */
interface Part {
  readonly slug: string;
  readonly title: string;
  readonly intro: string;
  readonly operations: readonly DocumentedOperation[];
  readonly events: ReadonlyArray<readonly [string, ApiDocument["webhooks"][string]["post"]]>;
}

const partsOf = (document: ApiDocument): readonly Part[] => {
  const operations = operationsOf(document);
  return [
    ...document.tags.map(({ name, description = "" }) => ({
      ...{ slug: slugOf(name), title: `API: ${name}`, intro: description, events: [] },
      operations: operations.filter(({ tags }) => tags[0] === name),
    })),
    {
      ...{ slug: EVENTS, title: "Events", operations: [] },
      intro: "Sent to your webhook URLs as POST, signed by Standard Webhooks 1.0. Respond with 2xx within 15 seconds.",
      events: Object.entries(document.webhooks).map(([type, { post }]) => [type, post] as const),
    },
  ];
};

const REFERENCE = /"#\/components\/schemas\/([^"]+)"/g;

/** The named schemas that something refers to, directly or through others. */
const schemasOf = ({ components }: ApiDocument, value: unknown): ReadonlySet<string> => {
  const found = new Set<string>();
  const left: unknown[] = [value];
  for (let node = left.pop(); node !== undefined; node = left.pop())
    for (const [, name = ""] of JSON.stringify(node).matchAll(REFERENCE)) {
      if (found.has(name)) continue;
      found.add(name);
      left.push(components.schemas[name] ?? {});
    }
  return found;
};

/** The objects of a part have a page of their own: together, some would be too long. */
const objectsOf = (slug: string): string => `${slug}-objects`;

/** The page of each named schema: that of the first part that refers to it. */
const homesOf = (document: ApiDocument, parts: readonly Part[]): ReadonlyMap<string, string> => {
  const homes = new Map<string, string>();
  for (const { slug, operations, events } of parts)
    for (const name of schemasOf(document, [operations, events]))
      if (!homes.has(name)) homes.set(name, objectsOf(slug));
  // What only the document itself names.
  for (const name of Object.keys(document.components.schemas))
    if (!homes.has(name)) homes.set(name, objectsOf(parts.at(-1)?.slug ?? API));
  return homes;
};

const schemaSection = (name: string, document: ApiDocument): Markup => {
  const schema = document.components.schemas[name] ?? {};
  return html`<h2 id="${schemaAnchor(name)}">${name}</h2>
    <p>${prose(schema.description)}</p>
    ${schemaTable(schema)}`;
};

const SCHEMA_LINK = /href="#schema-([^"]+)"/g;

/** Links lead to the page of the schema, and templates leave their indentation behind. */
const finished = (body: Markup, slug: string, homes: ReadonlyMap<string, string>): Markup =>
  trustedMarkup(
    body.text
      .replaceAll(/>\s+</g, (gap) => (gap.includes("\n") ? ">\n<" : gap))
      .replaceAll(SCHEMA_LINK, (link, name: string) => {
        const home = homes.get(name);
        return home === slug || home === undefined ? link : `href="/docs/${home}#${schemaAnchor(name)}"`;
      }),
  );

/** One part. Articles are rendered in turns of their own, so that the event loop is not held. */
const partPage = async (document: ApiDocument, part: Part, homes: ReadonlyMap<string, string>): Promise<ManualPage> => {
  const { slug, title, intro, operations, events } = part;
  const articles: Markup[] = [];
  for (const operation of operations) {
    articles.push(operationArticle(document, operation));
    await nextTurn();
  }
  for (const [type, post] of events) {
    articles.push(eventArticle(document, type, post));
    await nextTurn();
  }
  const body = html`<h1>${title}</h1>
    <p>${prose(intro)}</p>
    ${articles}`;
  const isListed = slug === EVENTS;
  return { slug, title, isListed, section: "Reference", search: "titles", body: finished(body, slug, homes) };
};

const objectsPage = (document: ApiDocument, part: Part, homes: ReadonlyMap<string, string>): ManualPage => {
  const [slug, title] = [objectsOf(part.slug), `${part.title}: objects`];
  const schemas = [...homes].filter(([, home]) => home === slug).map(([name]) => name);
  const body = html`<h1>${title}</h1>
    <p>What requests and responses of <a href="/docs/${part.slug}">${part.title}</a> are made of.</p>
    ${schemas.map((name) => schemaSection(name, document))}`;
  return { slug, title, isListed: false, section: "Reference", search: "titles", body: finished(body, slug, homes) };
};

const operationItem = (slug: string, { operationId, method, summary }: DocumentedOperation): Markup =>
  html`<li><a href="/docs/${slug}#${operationId}">${methodBadge(method)} ${summary}</a></li>`;

const indexPage = ({ info, servers }: ApiDocument, parts: readonly Part[]): ManualPage => {
  const lists = parts
    .filter(({ operations }) => operations.length > 0)
    .map(
      ({ slug, title, intro, operations }) =>
        html`<h2 id="${slug}"><a href="/docs/${slug}">${title.replace("API: ", "")}</a></h2>
          <p>${prose(intro)}</p>
          <ul class="operations">
            ${operations.map((operation) => operationItem(slug, operation))}
          </ul>`,
    );
  const body = html`<h1>API</h1>
    <p>
      ${info.description} Version ${info.version}. The same as OpenAPI 3.1: <a href="/openapi.json">/openapi.json</a>.
    </p>
    <p>
      Base URL: <code>${servers[0].url}</code>. Send your API key as <code>Authorization: Bearer KEY</code>. The
      examples take it from a variable:
    </p>
    <pre tabindex="0"><code>export ${KEY_VARIABLE}=pw_test_…</code></pre>
    <p>A test key (<code>pw_test_…</code>) has the same operations without network access or credits.</p>
    <p>Events that webhooks get: <a href="/docs/${EVENTS}">Events</a>.</p>
    ${lists}`;
  return { slug: API, title: "API", isListed: true, section: "Reference", search: "titles", body };
};

/** The reference of the API: an index, a page for each tag, and the events, from the OpenAPI document. */
export const apiPages = async (openApi: unknown): Promise<readonly ManualPage[]> => {
  const document = apiDocumentSchema.parse(openApi);
  const parts = partsOf(document);
  const homes = homesOf(document, parts);
  const pages: ManualPage[] = [indexPage(document, parts)];
  const used = new Set(homes.values());
  for (const part of parts) {
    pages.push(await partPage(document, part, homes));
    if (used.has(objectsOf(part.slug))) pages.push(objectsPage(document, part, homes));
  }
  return pages;
};
