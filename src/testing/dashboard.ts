import type { TestApp } from "./app.ts";

/** A page or the response to a form. */
export interface TestPage {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** The document. */
  readonly html: string;
  /** What a person reads of it: without tags and repeated white space. */
  readonly text: string;
  readonly location: string | null;
}

export interface Visitor {
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<TestPage>;
  /** Sends a form with the session's CSRF token, or with another one. */
  readonly post: (path: string, fields?: Fields, csrf?: string) => Promise<TestPage>;
  /** Sends an upload: the token is in the query. */
  readonly upload: (path: string, body: BodyInit, headers?: Readonly<Record<string, string>>) => Promise<TestPage>;
  /** Sends a form and loads the page that it leads to. */
  readonly submit: (path: string, fields?: Fields) => Promise<TestPage>;
  readonly csrf: string;
  readonly accountId: string;
}

export type Fields = Readonly<Record<string, string | readonly string[]>>;

/** What a person reads of a document. */
export const textOfHtml = (html: string): string =>
  html
    .replace(/<(script|style|svg)\b[^>]*>[\s\S]*?<\/\1>/g, " ")
    .replace(/<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replace(/\s+/g, " ")
    .trim();

const formOf = (fields: Fields, csrf: string): URLSearchParams => {
  const form = new URLSearchParams({ _csrf: csrf });
  for (const [name, value] of Object.entries(fields))
    for (const one of typeof value === "string" ? [value] : value) form.append(name, one);
  return form;
};

export interface SignInOptions {
  readonly account?: string;
  readonly email?: string;
  readonly role?: "owner" | "member" | "viewer";
  readonly tag?: string;
  readonly isOperator?: boolean;
}

/** Signs a user in to the service of a test, by default an owner and operator of the main account, which is created if necessary. */
export const signIn = async (app: TestApp, options: SignInOptions = {}): Promise<Visitor> => {
  const { account = "main", email = `${account}@example.com`, role = "owner", isOperator = true, tag = null } = options;
  const { users, sessions, store } = app.service.accounts;
  if (store.findAccountByName(account) === undefined) app.newAccount(account, "scale");
  const accountId = store.findAccountByName(account)?.id ?? "";
  const invited = users.invite({ accountId, email, role, isOperator, tag }, null);
  if (!invited.ok) throw new Error(`no user: ${JSON.stringify(invited.error)}`);
  const client = { address: "192.0.2.1", userAgent: "test" };
  const token = app.db.transact((tx) => sessions.open(tx, invited.value.user.id, client));
  const found = sessions.find(token);
  if (found === undefined) throw new Error("no session");
  let cookies = [`pw_session=${token}`];

  const send = async (path: string, init: RequestInit = {}): Promise<TestPage> => {
    const headers = { accept: "text/html", cookie: cookies.join("; "), ...(init.headers as Record<string, string>) };
    const response = await app.handle(new Request(`http://localhost${path}`, { ...init, headers }));
    const flash = response.headers.getSetCookie().find((cookie) => cookie.startsWith("pw_flash="));
    cookies = [cookies[0] ?? "", ...(flash === undefined ? [] : [flash.split(";")[0] ?? ""])];
    const bytes = Buffer.from(await response.arrayBuffer());
    const html = bytes.toString();
    const location = response.headers.get("location");
    return { status: response.status, headers: response.headers, bytes, html, text: textOfHtml(html), location };
  };
  const get: Visitor["get"] = (path, headers = {}) => send(path, { headers });
  const post: Visitor["post"] = (path, fields = {}, csrf = found.csrfToken) =>
    send(path, { method: "POST", body: formOf(fields, csrf) });
  return {
    ...{ get, post, csrf: found.csrfToken, accountId: found.account.id },
    upload: (path, body, headers = {}) =>
      send(`${path}${path.includes("?") ? "&" : "?"}_csrf=${found.csrfToken}`, { method: "POST", body, headers }),
    async submit(path, fields = {}) {
      const sent = await post(path, fields);
      if (sent.location === null) throw new Error(`no redirect: ${sent.status} ${sent.text.slice(0, 500)}`);
      return get(sent.location);
    },
  };
};
