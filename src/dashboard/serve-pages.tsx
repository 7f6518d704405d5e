import { readSessionToken } from "../accounts/session-cookie.ts";
import type { ServedRoute } from "../foundation/http/route.ts";
import { renderToString } from "preact-render-to-string";
import { z } from "zod";
import type { AuditedAction, AuditLog } from "../accounts/audit-store.ts";
import type { Account } from "../accounts/store.ts";
import { networkKey } from "../foundation/base/cidr.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { visibleMarkup } from "../foundation/base/visible-text.ts";
import { type KeyMode, newVisitorId } from "../foundation/base/secrets.ts";
import { rateOf } from "../accounts/billing/store.ts";
import { abortIfClientGone } from "../foundation/http/body.ts";
import { errorResponse } from "../foundation/http/error-response.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { isForwardedHttps, pathOf, targetOf } from "../foundation/http/request-target.ts";
import { sendText } from "../foundation/http/response.ts";
import { subjectOf } from "../foundation/http/route-input.ts";
import { SCOPES } from "../foundation/http/scopes.ts";
import { assetPath, findAsset, Frame, type FrameFacts } from "./frame.tsx";
import {
  type Outcome,
  PageContext,
  type PageFacts,
  type Role,
  type View,
  type Viewer,
  type Visit,
  readTheme,
  readTimeZone,
  readVisitor,
  visitorCookie,
  visitorToken,
  CLEAR_FLASH,
  isRefusal,
  readFlash,
  redirectToPath,
  PageTurns,
} from "./visit.ts";
import { ForgedForm, type PageRoute, toSignIn } from "./page.ts";
import { helpPath } from "./help.ts";
import { hasRole, isViewerPage, roleOfForm, roleOfPage } from "./roles.ts";
import { type Brand, logoResponse } from "./logo.ts";
import { ShownOnce } from "./shown-once.tsx";
import { Empty } from "./components/panel.tsx";
import { ButtonLink } from "./components/inline.tsx";

/** What a valid session token stands for. */
export interface ActiveSession {
  readonly sessionId: string;
  readonly csrfToken: string;
  readonly user: {
    readonly id: string;
    readonly email: string;
    readonly role: Role;
    readonly isOperator: boolean;
    /** The tag whose domains a viewer sees; null for other roles. */
    readonly tag: string | null;
    /** Null: the zone of the browser. */
    readonly timeZone: string | null;
  };
  readonly account: Account;
}

export interface DashboardOptions {
  readonly guard: Guard;
  readonly clock: Clock;
  /** Finds a session by its token and whether that came by HTTPS; undefined for an unknown or expired one. */
  readonly findSession: (token: string, isSecure: boolean) => ActiveSession | undefined;
  readonly routes: readonly PageRoute[];
  readonly audit: Pick<AuditLog, "perform">;
  readonly frameFacts: (viewer: Viewer) => FrameFacts;
  /** The address that a request comes from; null without a socket. */
  readonly clientAddress: (request: Request) => string | null;
  /** Whether the service is reached by HTTPS, as configured. */
  readonly isHttps: boolean;
  /** Whether the service has its manual under `/docs`. */
  readonly hasManual: boolean;
  readonly brand: Brand;
  /** Where the service is reached. */
  readonly baseUrl: string;
}

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

/** The URL of such a page is a secret: it leaves neither in a Referer nor in an index. */
const BARE_HEADERS = { "referrer-policy": "no-referrer", "x-robots-tag": "noindex, nofollow, noarchive" };

const CLIENT_ERROR = 400;
const SERVER_ERROR = 500;
const TEST_PREFIX = "/test";

const hrefIn =
  (mode: KeyMode) =>
  (path: string): string =>
    mode === "live" ? path : `${TEST_PREFIX}${path === "/" ? "" : path}`;

const modeOf = (path: string): KeyMode =>
  path === TEST_PREFIX || path.startsWith(`${TEST_PREFIX}/`) ? "test" : "live";

const withoutPrefix = (path: string): string => {
  const bare = modeOf(path) === "test" ? path.slice(TEST_PREFIX.length) : path;
  return bare === "" ? "/" : bare;
};

/** The dashboard's pages: sessions, access, forms, and the frame around each page. */
export class Dashboard {
  readonly #turns: PageTurns;
  readonly #once: ShownOnce;

  constructor(private readonly deps: DashboardOptions) {
    this.#turns = new PageTurns(deps.clock);
    this.#once = new ShownOnce(deps.clock);
  }

  /** All pages in live and test mode, and the assets. */
  routes(): readonly ServedRoute[] {
    const pages = [...this.deps.routes, this.#once.page()].flatMap((route) => {
      const serve: ServedRoute["serve"] = ({ request, params }) => this.#serve(route, request, params);
      const { method, path } = route;
      return [
        { method, path, serve },
        { method, path: hrefIn("test")(path), serve },
      ];
    });
    const asset: ServedRoute["serve"] = async ({ request }) => {
      this.deps.guard.admitAnyone(request);
      const { logo } = this.deps.brand;
      if (logo?.path === pathOf(request)) return logoResponse(logo);
      return (await findAsset(request, pathOf(request))) ?? this.#notFound(request);
    };
    return [{ method: "GET", path: "/assets/:name", serve: asset }, ...pages];
  }

  /** An error as a page, for browsers; null for a client of the API, and where the page gets no turn. */
  async errorPage(request: Request, error: PageError): Promise<Response | null> {
    const path = pathOf(request);
    const isBrowser = request.headers.get("accept")?.includes("text/html") === true;
    if (!isBrowser || /^\/(v1|metrics|healthz|readyz|openapi\.json)(\/|$)/.test(path)) return null;
    // Where the database does not respond, nobody can be found signed in.
    const visit = error.status >= SERVER_ERROR ? this.#visitOfAnyone(request, {}) : this.#visit(request, {});
    const hasTurn = await visit.turn().then(
      () => true,
      () => false,
    );
    return hasTurn ? this.#render(visit, { view: { ...ErrorBody(error), status: error.status } }) : null;
  }

  async #notFound(request: Request): Promise<Response> {
    const message = "There is no such page.";
    const { status, body } = errorResponse("not_found", { message });
    return (await this.errorPage(request, { status, message })) ?? Response.json(body, { status });
  }

  async #serve(route: PageRoute, request: Request, params: unknown): Promise<Response> {
    const visit = this.#visit(request, params);
    const { viewer } = visit;
    if (viewer === null) this.deps.guard.admitAnyone(request);
    else this.deps.guard.admitUser(request, viewer.account.id);
    if (viewer === null && route.access !== "anyone") return toSignIn(request);
    if (viewer?.user.role === "viewer" && route.method === "GET" && route.path === "/")
      return redirectToPath(viewer.href("/dmarc"));
    if (!hasRole(route.access, viewer?.user))
      return this.#render(visit, {
        view: { ...ErrorBody({ status: 403, message: DENIED[route.access] }), status: 403 },
      });
    if (route.method === "POST") await abortIfClientGone(request);
    // A form gets its turn once its body is there.
    else await visit.turn();
    const outcome = await this.#perform(route, visit);
    if (outcome instanceof Response) return privately(outcome);
    if (viewer !== null && route.method === "POST" && outcome.view.isShownOnce === true)
      return this.#once.show(viewer, outcome.view);
    return this.#render(visit, outcome);
  }

  /** The change of a form and its entry in the audit log are one transaction. A form without a change has an entry if it succeeds. */
  async #perform(route: PageRoute, visit: Visit): Promise<Outcome | Response> {
    const { viewer, params, done } = visit;
    const work = () => this.#outcomeOf(route, visit);
    const actionOfRoute = route.action ?? null;
    if (viewer === null || actionOfRoute === null) return work();
    const by = { accountId: viewer.account.id, by: viewer.user.id };
    const ofPath = subjectOf(route.path, z.record(z.string(), z.string()).catch({}).parse(params));
    const actionOf = (): AuditedAction | null => {
      const { action = actionOfRoute, subject = ofPath, after } = done;
      return action === null ? null : { ...by, action, subject, ...(after === undefined ? {} : { after }) };
    };
    return this.deps.audit.perform({ action: actionOf, work, isRecordedUnchanged: hasSucceeded });
  }

  async #outcomeOf(route: PageRoute, visit: Visit): Promise<Outcome | Response> {
    try {
      return await route.serve(visit);
    } catch (error) {
      if (!(error instanceof ForgedForm)) throw error;
      const message = "This form is no longer valid, because you have signed in or out meanwhile. Load its page again.";
      return { view: { ...ErrorBody({ status: 403, message }), status: 403 } };
    }
  }

  #visit(request: Request, params: unknown): Visit {
    const visit = this.#visitOfAnyone(request, params);
    const token = readSessionToken(request, visit.isSecure);
    const session = token === null ? undefined : this.deps.findSession(token, visit.isSecure);
    if (session === undefined) return visit;
    const turn = (): Promise<void> => this.#turns.enter(request, session.account.id);
    return { ...visit, turn, viewer: viewerFrom(session, request), visitor: null, csrfToken: session.csrfToken };
  }

  #visitOfAnyone(request: Request, params: unknown): Visit {
    const isSecure = this.deps.isHttps || isForwardedHttps(request);
    const visitor = readVisitor(request, isSecure) ?? newVisitorId();
    const turn = (): Promise<void> => this.#turns.enter(request, networkKey(this.deps.clientAddress(request) ?? ""));
    return {
      request,
      params,
      path: withoutPrefix(pathOf(request)),
      isSecure,
      done: {},
      viewer: null,
      visitor,
      csrfToken: visitorToken(visitor),
      turn,
    };
  }

  async #render(visit: Visit, { view, form }: Outcome): Promise<Response> {
    await visit.turn();
    const { request, viewer, csrfToken, visitor, isSecure } = visit;
    const href = viewer?.href ?? hrefIn("live");
    const timeZone = viewer?.timeZone ?? readTimeZone(request);
    const nowMs = this.deps.clock.nowMs();
    const fieldIds = new Map<string, number>();
    const may = (action: string): boolean => hasRole(roleOfForm(action), viewer?.user);
    const isViewer = viewer?.user.role === "viewer";
    const mayOpen = (page: string): boolean =>
      isViewer ? isViewerPage(page) : hasRole(roleOfPage(page), viewer?.user);
    const facts: PageFacts = {
      csrfToken,
      fieldIds,
      timeZone,
      nowMs,
      url: targetOf(request),
      form: form ?? null,
      href,
      may,
      mayOpen,
      hasManual: this.deps.hasManual,
      brandName: this.deps.brand.name,
    };
    const isBare = view.isBare === true;
    const flash = isBare ? null : readFlash(request);
    const frame = {
      view,
      viewer,
      flash,
      theme: readTheme(request),
      logo: this.deps.brand.logo,
      shareImage: this.deps.brand.logo === null ? `${this.deps.baseUrl}${assetPath("share.png")}` : null,
      help: this.deps.hasManual ? helpPath(visit.path) : null,
      message: form?.message ?? null,
      facts: viewer === null || isViewer ? null : this.deps.frameFacts(viewer),
    };
    const markup = renderToString(
      <PageContext.Provider value={facts}>
        <Frame {...frame} />
      </PageContext.Provider>,
    );
    const response = sendText(request, `<!doctype html>${visibleMarkup(markup)}`, {
      ...view.headers,
      ...HEADERS,
      ...(isBare ? BARE_HEADERS : {}),
    });
    if (flash !== null) response.headers.append("set-cookie", CLEAR_FLASH);
    if (!isBare && visitor !== null && readVisitor(request, isSecure) === null)
      response.headers.append("set-cookie", visitorCookie(visitor, isSecure));
    return view.status === undefined
      ? response
      : new Response(response.body, { status: view.status, headers: response.headers });
  }
}

const viewerFrom = ({ sessionId, csrfToken, user, account }: ActiveSession, request: Request): Viewer => {
  const mode = modeOf(pathOf(request));
  const { id, email, role, isOperator } = user;
  return {
    user: { id, email, role, isOperator },
    account: { id: account.id, name: account.name },
    mode,
    sessionId,
    csrfToken,
    timeZone: user.timeZone ?? readTimeZone(request),
    href: hrefIn(mode),
    caller: {
      keyId: `user:${id}`,
      accountId: account.id,
      mode,
      scopes: role === "viewer" ? ["dmarc:read"] : SCOPES,
      rate: rateOf(account),
      // A viewer without a tag, which cannot be, sees nothing.
      onlyTag: role === "viewer" ? (user.tag ?? "") : null,
    },
  };
};

/** A form that is shown again has a status; one that leads to a page with what was wrong has a message for it. */
const hasSucceeded = (outcome: Outcome | Response): boolean =>
  outcome instanceof Response
    ? outcome.status < CLIENT_ERROR && !isRefusal(outcome)
    : (outcome.view.status ?? 200) < CLIENT_ERROR;

const DENIED: Readonly<Record<PageRoute["access"], string>> = {
  anyone: "You cannot see this page.",
  viewer: "You cannot see this page.",
  member: "Only members of the account can see this page.",
  owner: "Only an owner of the account can do this. Ask one of the owners.",
  "owner or operator": "Only an owner of the account or an operator of this service can do this. Ask one of them.",
  operator: "Only an operator of this service can see this page.",
};

/** Nothing that a session sees may be kept by a cache or framed. */
const privately = (response: Response): Response => {
  for (const [name, value] of Object.entries(HEADERS))
    if (name !== "content-type" && !response.headers.has(name)) response.headers.set(name, value);
  return response;
};

/** An error that a person sees. */
interface PageError {
  readonly status: number;
  readonly message?: string;
  /** Identifies the request in the log. */
  readonly requestId?: string;
}

const ERROR_TITLES: Readonly<Record<number, string>> = {
  400: "This request cannot be read",
  402: "Not enough credits",
  403: "Not allowed",
  404: "Page not found",
  405: "Not possible",
  409: "Not possible right now",
  413: "Too large",
  415: "Not supported",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Temporarily unavailable",
};

const ERROR_MESSAGES: Readonly<Record<number, string>> = {
  404: "There is nothing at this address, or it belongs to another account or to the other mode (live or test).",
  500: "This is a defect of the service. Nothing was lost. The operator finds the details in the log.",
};

/** The page of an error: what happened and where to go on. */
const ErrorBody = ({ status, message, requestId }: PageError): View => {
  const title = ERROR_TITLES[status] ?? "This did not work";
  return {
    title,
    section: null,
    body: (
      <Empty title={title} isPage action={<ButtonLink href="/">Go to the home page</ButtonLink>}>
        <p>{(status === 500 ? undefined : message) ?? ERROR_MESSAGES[status] ?? "Try again."}</p>
        {status >= 500 && requestId !== undefined && (
          <p class="soft">
            Request <code>{requestId}</code>
          </p>
        )}
      </Empty>
    ),
  };
};
