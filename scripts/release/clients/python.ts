import { type ClientModel, type ClientOperation, componentOf, type Schema, typeName } from "./operations.ts";

/** Words that cannot be names in Python. */
const KEYWORDS: ReadonlySet<string> = new Set(["from", "with", "class", "in", "is", "not", "as", "import", "global"]);

const snakeCase = (name: string): string => {
  const made = name
    .replaceAll("-", "_")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
  return KEYWORDS.has(made) ? `${made}_` : made;
};

const literal = (value: unknown): string =>
  value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);

const union = (types: readonly string[]): string => {
  const all = [...new Set(types)];
  return all.length === 1 ? (all[0] ?? "Any") : `Union[${all.join(", ")}]`;
};

const docstring = (text: string, indent: string): string =>
  `${indent}"""${text.replaceAll("\\", "\\\\").replaceAll('"""', "'''").replace(/"$/, "'")}"""\n`;

/** Writes types; objects without a name of their own are called after the place where they stand. */
class PythonTypes {
  readonly #lines: string[] = [];

  /** Definitions, each after those that it needs. */
  get text(): string {
    return this.#lines.join("\n");
  }

  typeOf(schema: Schema, name: string): string {
    const { $ref, const: constant, enum: choices, anyOf, oneOf, type, items = {} } = schema;
    if ($ref !== undefined) return `"${componentOf($ref)}"`;
    if (constant !== undefined) return constant === null ? "None" : `Literal[${literal(constant)}]`;
    if (choices !== undefined) return `Literal[${choices.map(literal).join(", ")}]`;
    const branches = anyOf ?? oneOf;
    if (branches !== undefined)
      return union(branches.map((branch, at) => this.typeOf(branch, branches.length > 2 ? `${name}${at + 1}` : name)));
    if (typeof type === "object") return union(type.map((one) => this.typeOf({ ...schema, type: one }, name)));
    if (type === "object") return this.#objectType(schema, name);
    if (type === "array") return `List[${this.typeOf(items, `${name}Item`)}]`;
    return { string: "str", integer: "int", number: "float", boolean: "bool", null: "None" }[type ?? ""] ?? "Any";
  }

  #objectType({ properties = {}, required = [], additionalProperties }: Schema, name: string): string {
    const fields = Object.entries(properties);
    if (fields.length === 0)
      return `Dict[str, ${typeof additionalProperties === "object" ? this.typeOf(additionalProperties, `${name}Value`) : "Any"}]`;
    const typed = fields.map(([field, schema]) => {
      const part = field.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
      return { field, isRequired: required.includes(field), type: this.typeOf(schema, name + part) };
    });
    const define = (called: string, some: typeof typed, more: string) =>
      this.#lines.push(
        `${called} = TypedDict("${called}", {${some.map(({ field, type }) => `${JSON.stringify(field)}: ${type}`).join(", ")}}${more})`,
      );
    const [present = [], optional = []] = [true, false].map((is) =>
      typed.filter(({ isRequired }) => isRequired === is),
    );
    if (optional.length === 0) define(name, present, "");
    else if (present.length === 0) define(name, optional, ", total=False");
    else {
      define(`_${name}Required`, present, "");
      define(`_${name}Optional`, optional, ", total=False");
      this.#lines.push(`class ${name}(_${name}Required, _${name}Optional):\n    pass\n`);
    }
    return `"${name}"`;
  }

  /** Defines a schema under its name. */
  define(name: string, schema: Schema): void {
    const type = this.typeOf(schema, name);
    if (type !== `"${name}"`) this.#lines.push(`${name} = ${type}`);
  }
}

const resultType = ({ name, result }: ClientOperation, types: PythonTypes): string => {
  const called = `${name.charAt(0).toUpperCase()}${name.slice(1)}Result`;
  if (typeof result !== "string") return union(result.map((schema) => types.typeOf(schema, called)));
  return { text: "str", bytes: "bytes", none: "None" }[result];
};

const methodOf = (operation: ClientOperation, types: PythonTypes): string => {
  const { name, method, path, text, args, body, accept, result } = operation;
  const called = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const typed = args.map(({ field, schema, isRequired }) => ({
    name: snakeCase(field),
    type: types.typeOf(schema, `${called}${snakeCase(field)}`),
    isRequired,
  }));
  if (body !== null) {
    const json = types.typeOf(body.schema, `${called}Body`);
    typed.push({
      name: "body",
      type: body.uploads.length === 0 ? json : `Union[${json}, Upload]`,
      isRequired: body.isRequired,
    });
  }
  const given = [
    ...typed.filter(({ isRequired }) => isRequired).map((one) => `${one.name}: ${one.type}`),
    ...typed.filter(({ isRequired }) => !isRequired).map((one) => `${one.name}: Optional[${one.type}] = None`),
  ];
  const placed = args.map(
    ({ field, place }) => `(${JSON.stringify(place)}, ${JSON.stringify(field)}, ${snakeCase(field)})`,
  );
  const kind = typeof result === "string" ? result : "json";
  return `    def ${snakeCase(name)}(self${given.length === 0 ? "" : `, *, ${given.join(", ")}`}) -> ${resultType(operation, types)}:
${docstring(text, "        ")}        return self._call("${method}", "${path}", [${placed.join(", ")}], ${body === null ? "None" : "body"}, "${accept}", "${kind}")
`;
};

const HEAD = `import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, List, Literal, NamedTuple, Optional, TypedDict, Union

`;

const RUNTIME = `class Upload(NamedTuple):
    """A file instead of JSON, with its media type such as "text/csv"."""

    content: bytes
    content_type: str


class PostwardenError(Exception):
    """An error of the API, or of a proxy before it.

    status: the HTTP status; code: the error code such as "not_found", "http_error" where the response has none;
    body: the whole body; retry_after_s: seconds to wait, None where the response does not say.
    """

    def __init__(self, status: int, body: Any, retry_after: Optional[str]) -> None:
        known = body if isinstance(body, dict) else {}
        self.status = status
        self.code = str(known.get("error", "http_error"))
        self.body = body
        self.retry_after_s = int(retry_after) if retry_after is not None and retry_after.isdecimal() else None
        super().__init__(f"{status} {self.code}: {known.get('message', '')}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


class Postwarden:
    """Calls a Postwarden service. url: such as "https://postwarden.example.com"; key: an API key."""

    def __init__(self, url: str, key: str, *, timeout_s: float = 120) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError("The URL must begin with https:// or http://")
        self._url = url.rstrip("/")
        self._key = key
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirect())

    def _call(self, method: str, path: str, args: List[Any], body: Any, accept: str, kind: str) -> Any:
        query = {}
        headers = {"Accept": accept, "Authorization": f"Bearer {self._key}"}
        for place, field, value in args:
            if place == "path":
                if value is None or re.fullmatch(r"\\.{0,2}", _text(value)):
                    raise TypeError(f"Required argument: {field}")
                path = path.replace("{" + field + "}", urllib.parse.quote(_text(value), safe=""))
            elif value is not None and place == "query":
                query[field] = _text(value)
            elif value is not None:
                headers[field] = _text(value)
        data = None
        if isinstance(body, Upload):
            data = body.content
            headers["Content-Type"] = body.content_type
        elif body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        target = self._url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(target, data=data, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            with error:
                content = error.read()
                try:
                    refused = json.loads(content)
                except ValueError:
                    refused = None
                raise PostwardenError(error.code, refused, error.headers.get("Retry-After")) from None
        if kind == "json":
            return json.loads(content)
        if kind == "text":
            return content.decode()
        return content if kind == "bytes" else None

    def pages(self, name: str, **given: Any) -> Iterator[Any]:
        """Each page of a list, such as pages("list_verifications", limit=100): follows next_cursor to the end."""
        while True:
            page = getattr(self, name)(**given)
            yield page
            given["cursor"] = page.get("next_cursor")
            if given["cursor"] is None:
                return

`;

/** The module \`postwarden_client\`. */
export const pythonClient = ({ version, schemas, operations }: ClientModel): string => {
  const types = new PythonTypes();
  for (const [name, schema] of Object.entries(schemas)) types.define(typeName(name), schema);
  const methods = operations.map((operation) => methodOf(operation, types));
  return `"""Client of the Postwarden API ${version}. Generated from its OpenAPI document."""\n\nfrom __future__ import annotations\n\n${HEAD}${RUNTIME}${methods.join("\n")}\n\n${types.text}\n`;
};
