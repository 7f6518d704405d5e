import {
  argumentName,
  type ClientModel,
  type ClientOperation,
  componentOf,
  type Schema,
  typeName,
} from "./operations.ts";

const union = (types: readonly string[]): string => [...new Set(types)].join(" | ");

const comment = (text: string | undefined, indent: string): string =>
  text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`;

const propertyName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

const objectType = ({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string => {
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(
    ([name, field]) =>
      `${comment(field.description, inner)}${inner}${propertyName(name)}${required.includes(name) ? "" : "?"}: ${typeOf(field, inner)};\n`,
  );
  if (fields.length > 0) return `{\n${fields.join("")}${indent}}`;
  return typeof additionalProperties === "object"
    ? `Record<string, ${typeOf(additionalProperties, indent)}>`
    : "Record<string, unknown>";
};

const typeOf = (schema: Schema, indent = ""): string => {
  const { $ref, const: constant, enum: choices, anyOf, oneOf, type, items = {} } = schema;
  if ($ref !== undefined) return componentOf($ref);
  if (constant !== undefined) return JSON.stringify(constant);
  if (choices !== undefined) return union(choices.map((choice) => JSON.stringify(choice)));
  const branches = anyOf ?? oneOf;
  if (branches !== undefined) return union(branches.map((branch) => typeOf(branch, indent)));
  if (typeof type === "object") return union(type.map((one) => typeOf({ ...schema, type: one }, indent)));
  if (type === "object") return objectType(schema, indent);
  if (type === "array") return `Array<${typeOf(items, indent)}>`;
  if (type === "integer" || type === "number") return "number";
  return type === "string" || type === "boolean" || type === "null" ? type : "unknown";
};

const inputType = ({ args, body }: ClientOperation): string => {
  const fields = args.map(
    ({ field, description, isRequired, schema }) =>
      `${comment(description, "      ")}      ${argumentName(field)}${isRequired ? "" : "?"}: ${typeOf(schema, "      ")};\n`,
  );
  if (body !== null) {
    const files =
      body.uploads.length === 0 ? [] : [`Upload<${union(body.uploads.map((type) => JSON.stringify(type)))}>`];
    fields.push(`      body${body.isRequired ? "" : "?"}: ${union([typeOf(body.schema, "      "), ...files])};\n`);
  }
  return `{\n${fields.join("")}    }`;
};

const isOptional = ({ args, body }: ClientOperation): boolean =>
  !args.some(({ isRequired }) => isRequired) && body?.isRequired !== true;

const resultType = ({ result }: ClientOperation): string => {
  if (typeof result !== "string") return union(result.map((schema) => typeOf(schema, "  ")));
  return { text: "string", bytes: "Uint8Array", none: "void" }[result];
};

const declarationOf = (operation: ClientOperation): string =>
  `${comment(operation.text, "  ")}  ${operation.name}(\n    input${isOptional(operation) ? "?" : ""}: ${inputType(operation)},\n    options?: CallOptions,\n  ): Promise<${resultType(operation)}>;\n`;

/** `index.d.ts` */
export const typescriptDeclarations = ({ version, schemas, operations }: ClientModel): string => {
  const types = Object.entries(schemas).map(
    ([name, schema]) => `${comment(schema.description, "")}export type ${typeName(name)} = ${typeOf(schema)};\n`,
  );
  const paged = operations.filter(({ isPaged }) => isPaged).map(({ name }) => JSON.stringify(name));
  return `/** Client of the Postwarden API ${version}. Generated from its OpenAPI document. */
export interface PostwardenOptions {
  /** Such as \`https://postwarden.example.com\`. */
  url: string;
  /** An API key. */
  key: string;
  /** Milliseconds until a call is given up; default: 120,000. */
  timeoutMs?: number;
  /** Replaces \`fetch\`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}
export interface CallOptions {
  signal?: AbortSignal;
}
/** A file instead of JSON. */
export interface Upload<T extends string> {
  content: string | Uint8Array<ArrayBuffer> | Blob;
  contentType: T;
}
/** An error of the API, or of a proxy before it. */
export declare class PostwardenError extends Error {
  readonly status: number;
  /** The error code, such as \`not_found\`; \`http_error\` where the response has none. */
  readonly code: string;
  /** The whole body. */
  readonly body: unknown;
  /** Seconds to wait; null where the response does not say. */
  readonly retryAfterS: number | null;
}
/** Operations with pages. */
export type PagedOperation = ${union(paged)};
export declare class Postwarden {
  constructor(options: PostwardenOptions);
  /** Each page of a list: follows \`next_cursor\` to the end. */
  pages<K extends PagedOperation>(
    name: K,
    input?: Parameters<Postwarden[K]>[0],
    options?: CallOptions,
  ): AsyncGenerator<Awaited<ReturnType<Postwarden[K]>>, void, undefined>;
${operations.map(declarationOf).join("")}}

${types.join("")}`;
};

const RUNTIME = `export class PostwardenError extends Error {
  constructor(response, body) {
    const code = typeof body?.error === "string" ? body.error : "http_error";
    super(\`\${response.status} \${code}: \${body?.message ?? response.statusText}\`);
    this.name = "PostwardenError";
    this.status = response.status;
    this.code = code;
    this.body = body;
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    this.retryAfterS = Number.isFinite(seconds) ? seconds : null;
  }
}

export class Postwarden {
  #url;
  #key;
  #fetch;
  #timeoutMs;

  constructor({ url, key, fetch = globalThis.fetch, timeoutMs = 120_000 }) {
    if (!/^https?:\\/\\//.test(url)) throw new TypeError("The URL must begin with https:// or http://");
    this.#url = url.replace(/\\/+$/, "");
    this.#key = key;
    this.#fetch = fetch;
    this.#timeoutMs = timeoutMs;
  }

  async #call([method, path, args, accept, result], input, { signal } = {}) {
    let target = path;
    const query = new URLSearchParams();
    const headers = { accept, authorization: \`Bearer \${this.#key}\` };
    for (const name of Object.keys(input)) {
      if (name !== "body" && !Object.hasOwn(args, name)) throw new TypeError(\`Unknown argument: \${name}\`);
    }
    for (const [name, [place, field]] of Object.entries(args)) {
      const value = input[name];
      if (place === "path") {
        if (value === undefined || /^\\.{0,2}$/.test(String(value))) throw new TypeError(\`Required argument: \${name}\`);
        target = target.replace(\`{\${field}}\`, () => encodeURIComponent(String(value)));
      } else if (value === undefined || value === null) continue;
      else if (place === "query") query.set(field, String(value));
      else headers[field] = String(value);
    }
    let body;
    if (input.body?.contentType !== undefined && input.body.content !== undefined) {
      body = input.body.content;
      headers["content-type"] = input.body.contentType;
    } else if (input.body !== undefined) {
      body = JSON.stringify(input.body);
      headers["content-type"] = "application/json";
    }
    const deadline = AbortSignal.timeout(this.#timeoutMs);
    const send = this.#fetch;
    const response = await send(this.#url + target + (query.size === 0 ? "" : \`?\${query}\`), {
      method,
      headers,
      body,
      redirect: "manual",
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
    if (!response.ok) throw new PostwardenError(response, await response.json().catch(() => null));
    if (result === "json") return response.json();
    if (result === "text") return response.text();
    if (result === "bytes") return new Uint8Array(await response.arrayBuffer());
    await response.arrayBuffer();
  }

  async *pages(name, input = {}, options) {
    let { cursor } = input;
    do {
      const page = await this[name]({ ...input, ...(cursor == null ? {} : { cursor }) }, options);
      yield page;
      cursor = page.next_cursor;
    } while (cursor != null);
  }

  static {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      this.prototype[name] = function (input = {}, options = {}) {
        return this.#call(operation, input, options);
      };
    }
  }
}
`;

/** `index.js`: a table of the operations, and one function that calls them. */
export const typescriptRuntime = ({ version, operations }: ClientModel): string => {
  const rows = operations.map(({ name, method, path, args, accept, result }) => {
    const places = Object.fromEntries(args.map(({ field, place }) => [argumentName(field), [place, field]]));
    const row = [method, path, places, accept, typeof result === "string" ? result : "json"];
    return `  ${name}: ${JSON.stringify(row)},\n`;
  });
  return `// Client of the Postwarden API ${version}. Generated from its OpenAPI document.\nconst OPERATIONS = {\n${rows.join("")}};\n\n${RUNTIME}`;
};
