import { html, type Markup } from "../../foundation/http/html.ts";
import type { ApiDocument, ApiParameter, ApiResponse, DocumentedOperation } from "./api-document.ts";
import { bodyTypesOf, curlExample } from "./curl-example.ts";
import { prose, bodyTable, valueCells } from "./schema-view.ts";

const exampleText = (example: unknown): string =>
  typeof example === "string" ? example : JSON.stringify(example, null, 2);

const exampleBlock = (example: unknown): Markup | false =>
  example !== undefined && html`<pre tabindex="0"><code>${exampleText(example)}</code></pre>`;

/** Which key an operation needs. */
const accessOf = ({ security, "x-scope": scope, responses }: DocumentedOperation): Markup => {
  if (security.length === 0) return html`${"401" in responses ? "Metrics token" : "No key"}`;
  return scope === undefined ? html`Any key` : html`Scope <code>${scope}</code>`;
};

const parameterRow = ({ name, in: place, required, description, schema }: ApiParameter): Markup =>
  html`<tr>
    <th scope="row"><code>${name}</code> <small>${place}${required !== true && ", optional"}</small></th>
    ${valueCells({ ...schema, ...(description === undefined ? {} : { description }) })}
  </tr>`;

const parametersOf = ({ parameters }: DocumentedOperation): Markup | false =>
  parameters.length > 0 &&
  html`<h3>Parameters</h3>
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Type</th>
            <th>Meaning</th>
          </tr>
        </thead>
        <tbody>
          ${parameters.map(parameterRow)}
        </tbody>
      </table>
    </div>`;

const requestOf = (document: ApiDocument, operation: DocumentedOperation): Markup => {
  const baseUrl = document.servers[0].url;
  const examples = bodyTypesOf(operation).map((type) => {
    const command = html`<pre tabindex="0"><code class="curl">${curlExample(operation, type, baseUrl)}</code></pre>`;
    const schema = type === null ? undefined : operation.requestBody?.content[type]?.schema;
    const body =
      schema !== undefined &&
      html`<details>
        <summary>Body: ${type}${operation.requestBody?.required === false && " (optional)"}</summary>
        ${bodyTable(document, schema)}
      </details>`;
    return html`${command}${body}`;
  });
  return html`<h3>Request</h3>
    ${examples}`;
};

const responseOf = (document: ApiDocument, status: string, { description, headers, content }: ApiResponse): Markup => {
  const bodies = Object.entries(content).map(
    ([type, { schema, example }]) =>
      html`<p>${type}</p>
        ${exampleBlock(example)}${schema !== undefined && bodyTable(document, schema)}`,
  );
  const names = Object.entries(headers).map(
    ([name, header]) => html`<li><code>${name}</code>: ${prose(header.description)}</li>`,
  );
  return html`<details>
    <summary><b class="s${status[0] ?? ""}">${status}</b> ${prose(description)}</summary>
    ${bodies}${
      names.length > 0 &&
      html`<p>Headers</p>
        <ul>
          ${names}
        </ul>`
    }
  </details>`;
};

const responsesOf = (document: ApiDocument, { responses }: DocumentedOperation): Markup => {
  const all = Object.entries(responses);
  const errors = all.filter(([status]) => Number(status) >= 400);
  const rows = errors.map(
    ([status, { description }]) =>
      html`<tr>
        <th scope="row"><b class="s4">${status}</b></th>
        <td>${description}</td>
      </tr>`,
  );
  return html`<h3>Responses</h3>
    ${all.filter(([status]) => !(Number(status) >= 400)).map(([status, response]) => responseOf(document, status, response))}
    ${
      rows.length > 0 &&
      html`<details>
        <summary>Errors: ${errors.map(([status], at) => html`${at > 0 && ", "}${status}`)}</summary>
        <div class="scroll">
          <table>
            <tbody>
              ${rows}
            </tbody>
          </table>
        </div>
        <p>The body is an <a href="#schema-Error">Error</a>.</p>
      </details>`
    }`;
};

export const methodBadge = (method: string): Markup => html`<b class="m ${method.toLowerCase()}">${method}</b>`;

/** An operation: what it does, its parameters, the request with curl, its responses and errors. */
export const operationArticle = (document: ApiDocument, operation: DocumentedOperation): Markup => {
  const { operationId, method, path, summary, description } = operation;
  return html`<h2 id="${operationId}">${summary}</h2>
    <p class="path">${methodBadge(method)} <code>${path}</code> <small class="access">${accessOf(operation)}</small></p>
    <p>${prose(description)}</p>
    ${parametersOf(operation)}${requestOf(document, operation)}${responsesOf(document, operation)}`;
};

/** A webhook event: when it is sent, and its body. */
export const eventArticle = (
  document: ApiDocument,
  type: string,
  operation: ApiDocument["webhooks"][string]["post"],
): Markup => {
  const media = operation.requestBody?.content["application/json"];
  return html`<h2 id="event-${type}">${type}</h2>
    <p>${prose(operation.summary)}</p>
    ${exampleBlock(media?.example)}${
      media?.schema !== undefined &&
      html`<details>
        <summary>Properties</summary>
        ${bodyTable(document, media.schema)}
      </details>`
    }`;
};
