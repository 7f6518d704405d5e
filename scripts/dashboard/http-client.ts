/**
 * A browser without a screen: cookies, links and forms over HTTP, for the proofs about access. Its name attacks the page that
 * shows who is signed in.
 */
import { HOSTILE_LINE } from "./hostile.ts";

export interface SeenForm {
  readonly method: "GET" | "POST";
  /** Path and query. */
  readonly action: string;
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>;
  readonly isUpload: boolean;
}

export interface SeenPage {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  readonly location: string | null;
}

/** The text of an attribute: the rewriter leaves character references as they are. */
const decoded = (attribute: string | null): string =>
  (attribute ?? "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

/** Path and query of a link as seen from a page; null for other origins. */
const targetOf = (href: string, from: string): string | null => {
  const base = new URL(from, "http://localhost");
  const url = new URL(href, base);
  return url.origin === base.origin ? url.pathname + url.search : null;
};

/** The links and forms of a page. */
export const readPage = async (html: string, from: string): Promise<{ links: string[]; forms: SeenForm[] }> => {
  const links: string[] = [];
  const forms: SeenForm[] = [];
  let fields: Array<readonly [string, string]> = [];
  // Forms that go where a button outside of them says.
  const shared = new Map<string, SeenForm["fields"]>();
  const addField = (element: HTMLRewriterTypes.Element, to: Array<readonly [string, string]>): void => {
    const name = element.getAttribute("name");
    if (name !== null) to.push([name, decoded(element.getAttribute("value"))]);
  };
  const rewriter = new HTMLRewriter()
    .on("a[href]", {
      element(element) {
        const target = targetOf(decoded(element.getAttribute("href")), from);
        if (target !== null) links.push(target);
      },
    })
    .on("form", {
      element(element) {
        const given = element.getAttribute("action");
        const method = element.getAttribute("method")?.toUpperCase() === "POST" ? "POST" : "GET";
        fields = [];
        if (given === null && method === "POST") {
          shared.set(element.getAttribute("id") ?? "", fields);
          return;
        }
        const action = targetOf(decoded(given), from) ?? "elsewhere";
        forms.push({ method, action, fields, isUpload: element.getAttribute("enctype") === "multipart/form-data" });
      },
    })
    .on("form input, form button, form select, form textarea", { element: (element) => addField(element, fields) })
    .on("button[form][formaction]", {
      element(element) {
        const action = targetOf(decoded(element.getAttribute("formaction")), from) ?? "elsewhere";
        const sent = [...(shared.get(element.getAttribute("form") ?? "") ?? [])];
        addField(element, sent);
        forms.push({ method: "POST", action, fields: sent, isUpload: false });
      },
    })
    // Of a choice, the first option or the chosen one.
    .on("form select option", {
      element(element) {
        const [name, value] = fields.at(-1) ?? ["", ""];
        const isFirst = value === "";
        if (isFirst || element.getAttribute("selected") !== null)
          fields.splice(-1, 1, [name, decoded(element.getAttribute("value"))]);
      },
    });
  await rewriter.transform(new Response(html)).text();
  return { links, forms };
};

export class HttpClient {
  readonly #cookies = new Map<string, string>();

  constructor(readonly base: string) {}

  cookie(name: string): string | undefined {
    return this.#cookies.get(name);
  }

  setCookie(name: string, value: string): void {
    this.#cookies.set(name, value);
  }

  /** The cookies for a browser context. */
  cookies(): Array<{ name: string; value: string; url: string }> {
    return [...this.#cookies].map(([name, value]) => ({ name, value, url: this.base }));
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<SeenPage> {
    return this.#send(path, { headers });
  }

  post(
    path: string,
    body: URLSearchParams | FormData,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<SeenPage> {
    return this.#send(path, { method: "POST", body, headers });
  }

  /** Fills in the form with this action on a page and sends it, as a browser would. */
  async submit(page: string, action: string, values: Readonly<Record<string, string>>): Promise<SeenPage> {
    const { html } = await this.get(page);
    const form = (await readPage(html, page)).forms.find((one) => one.method === "POST" && one.action === action);
    if (form === undefined) throw new Error(`${page} has no form ${action}: ${html.slice(0, 2_000)}`);
    return this.post(action, new URLSearchParams(Object.entries({ ...Object.fromEntries(form.fields), ...values })));
  }

  async #send(path: string, init: RequestInit): Promise<SeenPage> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = {
      accept: "text/html",
      "user-agent": HOSTILE_LINE,
      cookie,
      ...(init.headers as Record<string, string>),
    };
    const response = await fetch(this.base + path, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) this.#keep(line);
    const location = response.headers.get("location");
    return { status: response.status, headers: response.headers, html: await response.text(), location };
  }

  #keep(line: string): void {
    const [pair = ""] = line.split(";");
    const at = pair.indexOf("=");
    const [name, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    if (/max-age=0\b/i.test(line)) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

/** A client with a session; throws when the sign-in fails. */
export const signIn = async (url: string, { email, password }: Credentials): Promise<HttpClient> => {
  const client = new HttpClient(url);
  const page = await client.submit("/sign-in", "/sign-in", { email, password });
  if (page.status !== 303) throw new Error(`the sign-in of ${email} failed: ${page.status} ${page.html.slice(0, 500)}`);
  return client;
};
