import type { TestApp } from "./app.ts";
import { type Fields, type TestPage, textOfHtml } from "./dashboard.ts";

/** A browser without scripts: it keeps cookies, and sends forms with the token of the last page unless told otherwise. */
export class Browser {
  readonly #cookies = new Map<string, string>();
  #csrf = "";

  constructor(
    private readonly app: TestApp,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** The CSRF token of the last page with a form. */
  get csrf(): string {
    return this.#csrf;
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name);
  }

  setCookie(name: string, value: string): void {
    this.#cookies.set(name, value);
  }

  get(path: string): Promise<TestPage> {
    return this.#send(path, {});
  }

  post(path: string, fields: Fields = {}): Promise<TestPage> {
    const body = new URLSearchParams();
    for (const [name, value] of Object.entries({ _csrf: this.#csrf, ...fields }))
      for (const one of typeof value === "string" ? [value] : value) body.append(name, one);
    return this.#send(path, { method: "POST", body });
  }

  async #send(path: string, init: RequestInit): Promise<TestPage> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { accept: "text/html", cookie, "user-agent": "Mozilla/5.0 Firefox/130.0", ...this.headers };
    const response = await this.app.handle(new Request(`http://localhost${path}`, { ...init, headers }));
    for (const one of response.headers.getSetCookie()) this.#store(one);
    const bytes = Buffer.from(await response.arrayBuffer());
    const html = bytes.toString();
    this.#csrf = /name="_csrf" value="(\w+)"/.exec(html)?.[1] ?? this.#csrf;
    const location = response.headers.get("location");
    return { status: response.status, headers: response.headers, bytes, html, text: textOfHtml(html), location };
  }

  #store(setCookie: string): void {
    const [pair = ""] = setCookie.split(";");
    const [name = "", value = ""] = pair.split("=");
    if (/Max-Age=0\b/.test(setCookie)) this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}
