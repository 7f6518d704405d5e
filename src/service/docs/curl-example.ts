import type { DocumentedOperation, SchemaNode } from "./api-document.ts";

/** A request with curl. The key comes from the variable of this name. */
export const KEY_VARIABLE = "POSTWARDEN_KEY";
const METRICS_VARIABLE = "METRICS_TOKEN";
/** The id of the examples in the document. */
const EXAMPLE_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";
const JSON_TYPE = "application/json";
/** A body longer than this is shown on several lines. */
const LINE_MAX = 80;

/** Files that are uploaded: media type → name. */
const FILES: Readonly<Record<string, string>> = {
  "application/xml": "report.xml",
  "application/gzip": "report.xml.gz",
  "application/zip": "report.zip",
  "message/rfc822": "report.eml",
  "application/octet-stream": "report.xml.gz",
  "text/csv": "list.csv",
};

/** One text for the shell, whatever is in it. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const exampleValue = ({ examples, type, minimum = 0, format }: SchemaNode): string => {
  const [first] = examples ?? [];
  if (first !== undefined) return String(first);
  if (format === "uuid") return EXAMPLE_ID;
  return type === "integer" ? String(minimum) : "example";
};

const urlOf = ({ path, parameters }: DocumentedOperation, baseUrl: string): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parameters.find((one) => one.in === "path" && one.name === name);
    return encodeURIComponent(exampleValue(parameter?.schema ?? {}));
  });
  return baseUrl.replace(/(?<!\/)\/+$/, "") + filled;
};

const authorizationOf = ({ security, responses }: DocumentedOperation): string[] => {
  if (security.length > 0) return [`-H "Authorization: Bearer $${KEY_VARIABLE}"`];
  return "401" in responses ? [`-H "Authorization: Bearer $${METRICS_VARIABLE}"`] : [];
};

const bodyOf = (type: string, example: unknown): string[] => {
  const header = `-H ${shellQuoted(`Content-Type: ${type}`)}`;
  if (type === JSON_TYPE) {
    const line = JSON.stringify(example);
    const body = line.length <= LINE_MAX ? line : JSON.stringify(example, null, 2);
    return [header, `-d ${shellQuoted(body)}`];
  }
  if (type === "multipart/form-data") return [`-F ${shellQuoted("file=@list.csv")}`];
  return [header, `--data-binary ${shellQuoted(`@${FILES[type] ?? "file"}`)}`];
};

/** The media types of the body, JSON first; null where there is none. */
export const bodyTypesOf = ({ requestBody }: DocumentedOperation): readonly (string | null)[] => {
  const types = Object.keys(requestBody?.content ?? {});
  return types.length === 0 ? [null] : types.toSorted((a, b) => Number(b === JSON_TYPE) - Number(a === JSON_TYPE));
};

/** The command for an operation, with a body of this media type. */
export const curlExample = (operation: DocumentedOperation, type: string | null, baseUrl: string): string => {
  const { method, requestBody } = operation;
  const example = type === null ? undefined : requestBody?.content[type]?.example;
  const parts = [
    `curl ${method === "GET" || (type !== null && method === "POST") ? "" : `-X ${method} `}${shellQuoted(urlOf(operation, baseUrl))}`,
    ...authorizationOf(operation),
    ...(type === null ? [] : bodyOf(type, example)),
  ];
  return parts.join(" \\\n  ");
};
