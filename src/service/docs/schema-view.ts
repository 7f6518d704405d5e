import { html, type Markup } from "../../foundation/http/html.ts";
import { type ApiDocument, resolveSchema, type SchemaNode } from "./api-document.ts";

/** Objects inside objects are unfolded this deep; the rest is named by its type. */
const DEPTH_MAX = 4;

/** Where a named schema stands on the page. */
export const schemaAnchor = (name: string): string => `schema-${name}`;

const schemaLink = (name: string): Markup => html`<a href="#${schemaAnchor(name)}">${name}</a>`;

/** Text with `code` in backquotes. */
export const prose = (text: string | undefined): Markup =>
  html`${(text ?? "").split("`").map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`;

/** The type of a node in words: `string (uuid)`, `array of Signal`, `integer or null`. */
const typeOf = (node: SchemaNode): Markup => {
  if (node.$ref !== undefined) return schemaLink(node.$ref.split("/").at(-1) ?? "");
  if (node.anyOf !== undefined)
    return html`${node.anyOf.map((one, at) => html`${at === 0 ? "" : " or "}${typeOf(one)}`)}`;
  if (node.const !== undefined) return html`<code>${JSON.stringify(node.const)}</code>`;
  const type = typeof node.type === "object" ? node.type.join(" or ") : (node.type ?? "any");
  if (type === "array") return html`array of ${typeOf(node.items ?? {})}`;
  return html`${type}${node.format !== undefined && html` (${node.format})`}`;
};

/** `1 to 200 characters`, `at most 5 items`; nothing without a limit. */
const range = (min: number | undefined, max: number | undefined, unit = ""): string[] => {
  if (min === undefined && max === undefined) return [];
  const words = min === undefined ? `at most ${max}` : max === undefined ? `at least ${min}` : `${min} to ${max}`;
  return [words + unit];
};

/** What a value must be beside its type. */
const limitsOf = (node: SchemaNode): Markup => {
  const words = [
    // The largest safe integer is not a limit that anybody reaches.
    ...range(node.minimum, node.maximum === Number.MAX_SAFE_INTEGER ? undefined : node.maximum),
    ...range(node.minLength, node.maxLength, " characters"),
    ...range(node.minItems, node.maxItems, " items"),
    ...(node.default === undefined ? [] : [`default ${JSON.stringify(node.default)}`]),
  ];
  const values = (node.enum ?? node.items?.enum ?? []).map(
    (value, at) => html`${at > 0 && ", "}<code>${String(value)}</code>`,
  );
  return html`${values.length > 0 && html`<p class="values">One of ${values}</p>`}${words.length > 0 && html`<p class="limits">${words.join("; ")}</p>`}`;
};

/** Type, limits and description of a value, as two cells of a table. */
export const valueCells = (node: SchemaNode): Markup =>
  html`<td class="type">${typeOf(node)}</td>
    <td>${prose(node.description)}${limitsOf(node)}</td>`;

/** The properties of a node, also inside arrays and alternatives, each with its path: `items[].email`. */
const rowsOf = (node: SchemaNode, path: string, depth: number): readonly Markup[] => {
  if (depth > DEPTH_MAX) return [];
  const inside = node.items === undefined ? [] : rowsOf(node.items, `${path}[]`, depth);
  const alternatives = (node.anyOf ?? []).flatMap((one) => rowsOf(one, path, depth));
  const required = new Set(node.required ?? []);
  const own = Object.entries(node.properties ?? {}).flatMap(([name, property]) => {
    const full = path === "" ? name : `${path}.${name}`;
    const optional = !required.has(name) && html` <small>optional</small>`;
    return [
      html`<tr>
        <th scope="row"><code>${full}</code>${optional}</th>
        ${valueCells(property)}
      </tr>`,
      ...rowsOf(property, full, depth + 1),
    ];
  });
  const others = node.additionalProperties;
  const values =
    typeof others === "object" && Object.keys(others).length > 0
      ? [
          html`<tr>
            <th scope="row"><code>${path === "" ? "*" : `${path}.*`}</code></th>
            ${valueCells(others)}
          </tr>`,
        ]
      : [];
  return [...inside, ...alternatives, ...own, ...values];
};

/** A table of the properties of a body; what they refer to is linked. */
export const bodyTable = (document: ApiDocument, node: SchemaNode): Markup => {
  const { name, schema } = resolveSchema(document, node);
  return tableOf(name, schema);
};

/** A table of the properties of a named schema; what it refers to is linked. */
export const schemaTable = (schema: SchemaNode): Markup => tableOf(null, schema);

/** A schema without properties is a sentence with its type. */
const tableOf = (name: string | null, schema: SchemaNode): Markup => {
  const rows = rowsOf(schema, "", 0);
  const title = name !== null && html`<p>Schema ${schemaLink(name)}</p>`;
  if (rows.length === 0)
    return html`<p>${typeOf(schema)}. ${prose(schema.description)}</p>
      ${limitsOf(schema)}`;
  return html`${title}
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>Property</th>
            <th>Type</th>
            <th>Meaning</th>
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>`;
};
