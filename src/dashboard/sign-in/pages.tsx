import { readSessionToken, sessionCookie } from "../../accounts/session-cookie.ts";
import { z } from "zod";
import {
  type Client,
  SESSION_MS_MAX,
  type Sessions,
  type SignedIn,
  type SignInProblem,
} from "../../accounts/sessions.ts";
import type { SetupLinks } from "../../accounts/setup-links.ts";
import type { Users } from "../../accounts/users.ts";
import { AppError, type Result } from "../../foundation/base/errors.ts";
import { formAction, type PageRoute, publicAction, publicPage } from "../page.ts";
import { type View, type Visit, type Flash, isOwnPath, redirectToPath } from "../visit.ts";
import { requireSame, userRefusal } from "../user-refusal.ts";
import { Empty, Callout, PageHead, Panel } from "../components/panel.tsx";
import { Button, Field, PostForm } from "../components/form.tsx";
import { ButtonLink, Link } from "../components/inline.tsx";

export interface SignInParts {
  readonly sessions: Sessions;
  readonly setupLinks: SetupLinks;
  readonly users: Pick<Users, "hasUsers">;
  /** Called when the first user of the service was made. */
  readonly onFirstUser: () => void;
  /** The address of the client, by which attempts are slowed down; null when the connection is gone. */
  readonly clientAddress: (request: Request) => string | null;
}

/** Where to go after the sign-in: a page of this site, or home. */
const nextPath = z
  .string()
  .refine((path) => isOwnPath(path) && !/^\/(sign-in|sign-out|setup)\b/.test(path))
  .catch("/");

const SIGN_IN_FORM = z.object({
  email: z.string().max(500),
  // Longer ones are refused by the use case, in the same time as others.
  password: z.string(),
  next: nextPath,
});
const CODE_FORM = z.object({ challenge: z.string().max(100), code: z.string().max(100), next: nextPath });
const SETUP_FORM = z.object({ email: z.string().max(500).default(""), password: z.string(), repeat: z.string() });
const SETUP_PATH = z.object({ token: z.string() });

const REFUSALS = {
  wrong: ["unauthorized", "Email address or password is wrong."],
  disabled: ["account_disabled", "Your account is disabled. Ask the operator of this service to enable it."],
  busy: ["unavailable", "Too many sign-ins at this moment. Try again in a few seconds."],
} as const;

const secondsText = (seconds: number): string => (seconds === 1 ? "1 second" : `${seconds} seconds`);

const throttled = (retryAfterS: number): AppError =>
  new AppError("rate_limited", {
    message: `Too many attempts. Wait ${secondsText(retryAfterS)}, then try again; your password keeps working.`,
    headers: { "retry-after": String(retryAfterS) },
  });

/** The last wrong code leads back to the password; later ones are refused beside their field. */
const codesWait = ({ retryAfterS, isOver }: SignInProblem & { kind: "codes_wait" }, next: string): Response => {
  const wait = `Wait ${secondsText(retryAfterS)}, or enter a recovery code`;
  const advice = "If it was not you, somebody knows your password: change it.";
  if (isOver) return redirectToPath(signInPath(next), { bad: `Too many wrong codes. ${wait}. ${advice}` });
  const message = `Too many wrong codes were entered for your user. ${wait}. ${advice}`;
  const headers = { "retry-after": String(retryAfterS) };
  throw new AppError("rate_limited", { message, issues: [{ path: "code", message }], headers });
};

const STALE: Flash = { bad: "This sign-in has expired, or something has changed meanwhile. Sign in again." };

const signInPath = (next: string): string => (next === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(next)}`);

/** Removes the session cookie, whichever of its names it has. */
const ENDED_COOKIES = [false, true].map((isSecure) => sessionCookie("", { isSecure, seconds: 0 }));

/** Signing in and out, and the pages of one-time links. */
export const createSignInPages = (parts: SignInParts): readonly PageRoute[] => {
  const { sessions, users } = parts;
  const clientOf = clientReader(parts.clientAddress);

  /** What a refused step leads to; a wrong code is `wrong`, too. */
  const refusal = (problem: SignInProblem, next: string): View | Response => {
    if (problem.kind === "code_required") return codeView(problem.challenge, next);
    if (problem.kind === "expired") return redirectToPath(signInPath(next), STALE);
    if (problem.kind === "throttled") throw throttled(problem.retryAfterS);
    if (problem.kind === "codes_wait") return codesWait(problem, next);
    const [code, message] = REFUSALS[problem.kind];
    throw new AppError(code, { message });
  };
  const answer = (result: Result<SignedIn, SignInProblem>, visit: Visit, next: string): View | Response =>
    result.ok ? redirectToPath(next, undefined, [cookieOf(result.value, visit)]) : refusal(result.error, next);

  return [
    publicPage({ path: "/sign-in", query: z.object({ next: nextPath.optional() }) }, ({ visit, query }) =>
      visit.viewer === null ? signInView(query.next ?? "/", users.hasUsers()) : redirectToPath(query.next ?? "/"),
    ),
    publicAction(
      { path: "/sign-in", form: SIGN_IN_FORM },
      async ({ visit, form }) => answer(await sessions.signIn(form, clientOf(visit)), visit, form.next),
      ({ values }) => signInView(nextPath.parse(values.next), users.hasUsers()),
    ),
    publicAction(
      { path: "/sign-in/code", form: CODE_FORM },
      async ({ visit, form }) => answer(await enterCode(sessions, form, clientOf(visit)), visit, form.next),
      ({ values }) => codeView(z.string().catch("").parse(values.challenge), nextPath.parse(values.next)),
    ),
    formAction({ path: "/sign-out" }, ({ viewer }) => {
      sessions.end(viewer.user.id, viewer.sessionId);
      return redirectToPath("/sign-in", { ok: "You are signed out." }, ENDED_COOKIES);
    }),
    formAction({ path: "/sign-out/everywhere" }, ({ viewer }) => {
      sessions.endAll(viewer.user.id);
      return redirectToPath("/sign-in", { ok: "You are signed out in all browsers." }, ENDED_COOKIES);
    }),
    ...createSetupPages(parts, clientOf),
  ];
};

/** The pages of one-time links. */
const createSetupPages = (
  { setupLinks, sessions, onFirstUser }: SignInParts,
  clientOf: (visit: Visit) => Client,
): readonly PageRoute[] => {
  const viewOf = (token: string): View => {
    const found = setupLinks.find(token);
    return found.ok ? setupView({ token, ...found.value }) : brokenLinkView(found.error.message);
  };
  return [
    publicPage({ path: "/setup/:token", params: SETUP_PATH }, ({ params }) => viewOf(params.token)),
    publicAction(
      { path: "/setup/:token", params: SETUP_PATH, form: SETUP_FORM },
      async ({ visit, params: { token }, form }) => {
        const found = setupLinks.find(token);
        if (!found.ok) return brokenLinkView(found.error.message);
        requireSame(form.password, form.repeat);
        const used = await setupLinks.use(token, form, { sessions, client: clientOf(visit) });
        // The first user of the service has everything yet to set up.
        const isFirst = found.value.email === null;
        const next = isFirst ? "/welcome" : "/";
        if (used.ok && isFirst) onFirstUser();
        if (used.ok) return redirectToPath(next, { ok: "You are signed in." }, [cookieOf(used.value, visit)]);
        if (used.error.code.startsWith("link_")) return brokenLinkView(used.error.message);
        throw userRefusal(used.error);
      },
      ({ params }) => viewOf(params.token),
    ),
  ];
};

const clientReader =
  (clientAddress: SignInParts["clientAddress"]) =>
  ({ request, isSecure }: Visit): Client => ({
    address: clientAddress(request) ?? "",
    userAgent: request.headers.get("user-agent") ?? "",
    token: readSessionToken(request, isSecure) ?? undefined,
    isSecure,
  });

const cookieOf = ({ token }: SignedIn, { isSecure }: Visit): string =>
  sessionCookie(token, { isSecure, seconds: SESSION_MS_MAX / 1000 });

/** The second step, in whose page a wrong code stands beside its field. */
const enterCode = async (
  sessions: Sessions,
  form: z.output<typeof CODE_FORM>,
  client: Client,
): ReturnType<Sessions["enterCode"]> => {
  const entered = await sessions.enterCode(form, client);
  if (entered.ok || entered.error.kind !== "wrong") return entered;
  const message = "This code is wrong or was used before. Enter the present code of your app.";
  throw new AppError("unauthorized", { message, issues: [{ path: "code", message }] });
};

/** The sign-in. `hasUsers` is false on a service that nobody has set up. */
const signInView = (next: string, hasUsers: boolean): View => ({
  title: "Sign in",
  section: null,
  body: (
    <>
      <PageHead title="Sign in" />
      {!hasUsers && (
        <Callout kind="info" title="Nobody can sign in yet">
          <p>
            Open the link that the service printed at its first start, or run <code>postwarden users add EMAIL</code> on
            the server.
          </p>
        </Callout>
      )}
      <Panel>
        <PostForm action="/sign-in" class="form">
          <input type="hidden" name="next" value={next} />
          <Field name="email" label="Email address" type="email" autocomplete="username" isRequired hasFocus />
          <Field name="password" label="Password" type="password" autocomplete="current-password" isRequired />
          <Button kind="main">Sign in</Button>
        </PostForm>
      </Panel>
      <p class="soft small">
        Forgot the password, or lost the phone? An owner of your account can give you a new link. On the server,{" "}
        <code>postwarden users reset EMAIL</code> prints one.
      </p>
    </>
  ),
});

/** The second step of a sign-in. */
const codeView = (challenge: string, next: string): View => ({
  title: "Enter the code",
  section: null,
  body: (
    <>
      <PageHead title="Enter the code" />
      <Panel>
        <PostForm action="/sign-in/code" class="form">
          <input type="hidden" name="challenge" value={challenge} />
          <input type="hidden" name="next" value={next} />
          <Field
            {...{ name: "code", label: "Code of your authenticator app", autocomplete: "one-time-code" }}
            hint="Six digits. Without your phone, enter one of your recovery codes."
            isRequired
            isMono
            hasFocus
          />
          <Button kind="main">Sign in</Button>
        </PostForm>
      </Panel>
      <p class="soft small">
        <Link href="/sign-in">Sign in as somebody else</Link>
      </p>
    </>
  ),
});

interface SetupFacts {
  readonly token: string;
  readonly accountName: string;
  /** Null: the first user chooses one. */
  readonly email: string | null;
}

/** Where a person sets a password by a one-time link. */
const setupView = ({ token, accountName, email }: SetupFacts): View => ({
  title: "Set up your sign-in",
  section: null,
  body: (
    <>
      <PageHead title={email === null ? "Set up the dashboard" : "Choose a password"} />
      <p class="lead">
        {email === null
          ? `You will be the first user: an owner of the account ${accountName} and the operator of this service.`
          : `For your sign-in to the account ${accountName}.`}
      </p>
      <Panel>
        <PostForm action={`/setup/${token}`} class="form">
          {email === null ? (
            <Field name="email" label="Email address" type="email" autocomplete="username" isRequired hasFocus />
          ) : (
            <>
              <p class="fact">
                <span class="soft">Email address</span> <b>{email}</b>
              </p>
              <input type="hidden" name="username" value={email} autocomplete="username" />
            </>
          )}
          <Field
            {...{ name: "password", label: "Password", type: "password", autocomplete: "new-password" }}
            hint="At least 10 characters. Several words are easy to remember and hard to guess."
            isRequired
          />
          <Field name="repeat" label="The same again" type="password" autocomplete="new-password" isRequired />
          <Button kind="main">Save and sign in</Button>
        </PostForm>
      </Panel>
    </>
  ),
});

/** A link that does not work: why, and what to do. */
const brokenLinkView = (message: string): View => ({
  title: "This link does not work",
  section: null,
  status: 404,
  body: (
    <Empty title="This link does not work" isPage action={<ButtonLink href="/sign-in">Sign in</ButtonLink>}>
      <p>{message}</p>
      <p>
        If you have set your password already, sign in. Otherwise ask an owner of your account for a new link. On the
        server, <code>postwarden users add EMAIL</code> and <code>postwarden users reset EMAIL</code> print one.
      </p>
    </Empty>
  ),
});
