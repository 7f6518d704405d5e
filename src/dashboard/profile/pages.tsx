import { z } from "zod";
import type { OwnSession, Profiles, CodeEnrolment } from "../../accounts/profiles.ts";
import type { Sessions, ListedSession } from "../../accounts/sessions.ts";
import { totpUri } from "../../accounts/second-factor.ts";
import type { Users } from "../../accounts/users.ts";
import type { UserProblem, User } from "../../accounts/user-store.ts";
import { AppError, type Result } from "../../foundation/base/errors.ts";
import { formAction, page, type PageRoute } from "../page.ts";
import { type View, type Viewer, type Flash, redirectTo, usePage } from "../visit.ts";
import { requireSame, userRefusal } from "../user-refusal.ts";
import { CopyBlock } from "../components/copy.tsx";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import { ButtonLink, Badge } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/figures.tsx";
import { encode } from "uqr";

export interface ProfileParts {
  readonly profiles: Profiles;
  readonly sessions: Pick<Sessions, "list" | "end">;
  readonly users: Pick<Users, "find">;
}

const PATH = "/settings/profile";

const PASSWORD_FORM = z.object({ present: z.string(), password: z.string(), repeat: z.string() });
const CODES_FORM = z.object({ present: z.string(), change: z.enum(["recovery", "off"]) });
const CONFIRM_FORM = z.object({ present: z.string(), code: z.string().max(100) });

const ownOf = ({ user, sessionId }: Viewer): OwnSession => ({ userId: user.id, sessionId });

/** The value, or the error of the form that asked for it. */
const orRefuse = <T,>(result: Result<T, UserProblem>): T => {
  if (!result.ok) throw userRefusal(result.error);
  return result.value;
};

const done = (viewer: Viewer, flash: Flash): Response => redirectTo(viewer, PATH, flash);

/** What users change of themselves. */
export const createProfilePages = (parts: ProfileParts): readonly PageRoute[] => {
  const { profiles, sessions } = parts;
  const view = (viewer: Viewer): View => {
    const user = parts.users.find(viewer.user.id);
    if (user === undefined) throw new AppError("not_found");
    return profileView(viewer, {
      user,
      enrolment: profiles.findEnrolment(user.id),
      sessions: sessions.list(user.id),
    });
  };
  const again = { rerender: ({ viewer }: { readonly viewer: Viewer }) => view(viewer) };
  return [
    page({ path: PATH }, ({ viewer }) => view(viewer)),
    formAction(
      { path: `${PATH}/password`, form: PASSWORD_FORM },
      async ({ viewer, form }) => {
        requireSame(form.password, form.repeat);
        orRefuse(await profiles.changePassword(ownOf(viewer), { present: form.present, next: form.password }));
        return done(viewer, { ok: "Your password is changed. You are signed out everywhere else." });
      },
      again,
    ),
    formAction(
      { path: `${PATH}/time-zone`, form: z.object({ time_zone: z.string().max(100) }) },
      ({ viewer, form }) => {
        orRefuse(profiles.setTimeZone(viewer.user.id, form.time_zone === "" ? null : form.time_zone));
        return done(viewer, { ok: "The time zone is saved." });
      },
      again,
    ),
    formAction({ path: `${PATH}/sessions/:id/end`, params: z.object({ id: z.string() }) }, ({ viewer, params }) => {
      if (!sessions.end(viewer.user.id, params.id)) throw new AppError("not_found");
      return done(viewer, { ok: "That browser is signed out." });
    }),
    ...createCodeActions(profiles, again),
  ];
};

/** The codes of an authenticator app. */
const createCodeActions = (
  profiles: Profiles,
  again: { readonly rerender: (input: { readonly viewer: Viewer }) => View },
): readonly PageRoute[] => [
  formAction({ path: `${PATH}/codes/enrol` }, ({ viewer }) => {
    profiles.enrol(viewer.user.id);
    return redirectTo(viewer, PATH);
  }),
  formAction({ path: `${PATH}/codes/cancel` }, ({ viewer }) => {
    profiles.cancelEnrolment(viewer.user.id);
    return redirectTo(viewer, PATH);
  }),
  formAction(
    { path: `${PATH}/codes/confirm`, form: CONFIRM_FORM },
    async ({ viewer, form }) => {
      const codes = orRefuse(await profiles.confirmCodes(ownOf(viewer), form));
      return recoveryCodesView(codes, "Sign-in asks for a code from now on");
    },
    again,
  ),
  formAction(
    { path: `${PATH}/codes`, form: CODES_FORM },
    async ({ viewer, form: { change, present } }) => {
      if (change === "recovery") {
        const codes = orRefuse(await profiles.replaceRecoveryCodes(viewer.user.id, present));
        return recoveryCodesView(codes, "The former recovery codes work no longer");
      }
      orRefuse(await profiles.switchCodesOff(viewer.user.id, present));
      return done(viewer, { ok: "Sign-in asks for the password only." });
    },
    again,
  ),
];

interface ProfileFacts {
  readonly user: User;
  readonly enrolment: CodeEnrolment | null;
  readonly sessions: readonly ListedSession[];
}

const ZONES = Intl.supportedValuesOf("timeZone");

/** The page of one's own user. */
const profileView = (viewer: Viewer, { user, enrolment, sessions }: ProfileFacts): View => ({
  title: "Profile",
  section: "settings",
  body: (
    <>
      <PageHead title="Profile" />
      <Columns side={<About viewer={viewer} user={user} />}>
        <PasswordPanel />
        <CodesPanel user={user} enrolment={enrolment} />
      </Columns>
      <SessionsPanel viewer={viewer} sessions={sessions} />
    </>
  ),
});

const About = ({ viewer, user }: { readonly viewer: Viewer; readonly user: User }) => (
  <>
    <Panel title="You" isFlush>
      <Rows>
        <Row label="Email address">{user.email}</Row>
        <Row label="Account">{viewer.account.name}</Row>
        <Row label="Role">
          {user.role}
          {user.isOperator ? ", operator" : ""}
        </Row>
        <Row label="Since">
          <Time atMs={user.createdAtMs} style="day" />
        </Row>
      </Rows>
    </Panel>
    <Panel title="Time zone">
      <PostForm action="/settings/profile/time-zone" class="form">
        <SelectField
          {...{ name: "time_zone", label: "Times are shown in", value: user.timeZone ?? "" }}
          options={[["", "the zone of the browser"], ...ZONES.map((zone) => [zone, zone] as const)]}
        />
        <Button>Save</Button>
      </PostForm>
    </Panel>
  </>
);

const PasswordPanel = () => (
  <Panel title="Password">
    <PostForm action="/settings/profile/password" class="form">
      <Field
        {...{ name: "present", label: "Present password", type: "password", autocomplete: "current-password" }}
        isRequired
      />
      <Field
        {...{ name: "password", label: "New password", type: "password", autocomplete: "new-password" }}
        hint="At least 10 characters. Several words are easy to remember and hard to guess."
        isRequired
      />
      <Field
        {...{ name: "repeat", label: "The same again", type: "password", autocomplete: "new-password" }}
        isRequired
      />
      <Button kind="main">Change the password</Button>
      <p class="soft small">You stay signed in here, and are signed out everywhere else.</p>
    </PostForm>
  </Panel>
);

const CodesPanel = ({ user, enrolment }: Pick<ProfileFacts, "user" | "enrolment">) => (
  <Panel
    title="Two-factor authentication"
    aside={
      <Badge kind={user.hasSecondFactor ? "ok" : "unknown"} icon={user.hasSecondFactor ? "shield-check" : "minus"}>
        {user.hasSecondFactor ? "On" : "Off"}
      </Badge>
    }
  >
    {user.hasSecondFactor ? (
      <CodesOn left={user.recoveryCodesLeft} />
    ) : enrolment === null ? (
      <CodesOff />
    ) : (
      <Enrolling enrolment={enrolment} />
    )}
  </Panel>
);

const CodesOff = () => (
  <PostForm action="/settings/profile/codes/enrol" class="form">
    <p>
      With an authenticator app on your phone, sign-in asks for a code after the password, so that a stolen password is
      not enough.
    </p>
    <Button icon="shield-check">Set up</Button>
  </PostForm>
);

const presentPassword = { name: "present", type: "password", autocomplete: "current-password" } as const;

const Enrolling = ({ enrolment: { secret, email } }: { readonly enrolment: CodeEnrolment }) => (
  <div class="stack">
    <p>
      Scan this with the app (Aegis, Google Authenticator, 1Password and others), then enter the code that it shows.
    </p>
    <QrCode text={totpUri(secret, email, usePage().brandName)} label="QR code for the authenticator app" />
    <p>Without a camera, enter this key:</p>
    <CopyBlock text={secret.replaceAll(/(.{4})(?=.)/g, "$1 ")} label="Key for the authenticator app" />
    <PostForm action="/settings/profile/codes/confirm" class="form">
      <Field {...{ name: "code", label: "Code", autocomplete: "one-time-code" }} hint="Six digits." isRequired isMono />
      <Field {...presentPassword} label="Your password" isRequired />
      <Button kind="main">Switch on</Button>
    </PostForm>
    <PostForm action="/settings/profile/codes/cancel">
      <Button kind="quiet">Cancel</Button>
    </PostForm>
  </div>
);

const CodesOn = ({ left }: { readonly left: number }) => (
  <div class="stack">
    <p>
      Sign-in asks for a code of your app.{" "}
      {left === 0
        ? "No recovery code is left: make new ones before you lose the phone."
        : `${left} recovery ${left === 1 ? "code is" : "codes are"} left for when you lose the phone.`}
    </p>
    <PostForm action="/settings/profile/codes" class="form">
      <Field {...presentPassword} label="Your password" hint="Needed for either of these." isRequired />
      <div class="actions">
        <Button name="change" value="recovery">
          Make new recovery codes
        </Button>
        <Button name="change" value="off" kind="danger">
          Switch it off
        </Button>
      </div>
    </PostForm>
  </div>
);

const SessionsPanel = ({ viewer, sessions }: { readonly viewer: Viewer } & Pick<ProfileFacts, "sessions">) => (
  <Panel
    title="Where you are signed in"
    isFlush
    aside={
      <PostForm action="/sign-out/everywhere">
        <Button icon="log-out">Sign out everywhere</Button>
      </PostForm>
    }
  >
    <ul class="items people">
      {sessions.map(({ id, userAgent, address, lastSeenAtMs, createdAtMs }) => (
        <li key={id}>
          <h3 title={userAgent}>
            {browserName(userAgent)}{" "}
            {id === viewer.sessionId && (
              <Badge kind="ok" icon="user">
                This browser
              </Badge>
            )}
          </h3>
          <PostForm action={`/settings/profile/sessions/${id}/end`}>
            <Button>
              Sign out<span class="unseen"> {browserName(userAgent)}</span>
            </Button>
          </PostForm>
          <p class="detail">
            <span class="mono">{address === "" ? "unknown address" : address}</span> · last used{" "}
            <Time atMs={lastSeenAtMs} /> · signed in <Time atMs={createdAtMs} style="full" />
          </p>
        </li>
      ))}
    </ul>
  </Panel>
);

/** The recovery codes, which are shown only once. */
const recoveryCodesView = (codes: readonly string[], title: string): View => ({
  title: "Recovery codes",
  section: "settings",
  isShownOnce: true,
  body: (
    <>
      <PageHead title="Recovery codes" crumbs={[["Profile", "/settings/profile"]]} />
      <Callout
        {...{ kind: "ok", title }}
        actions={<ButtonLink href="/settings/profile">I have stored them</ButtonLink>}
      >
        <p>
          Store these recovery codes where you find them without your phone. Each signs you in once in place of a code.
          They are shown only now.
        </p>
        <CopyBlock text={codes.join("\n")} label="Recovery codes" />
      </Callout>
    </>
  ),
});

/** Empty modules around the code that readers need (ISO/IEC 18004 §6.3.8). */
const QUIET_ZONE = 4;

/** A text as a QR code: black on white in either colour scheme, because many readers need that. */
export const QrCode = ({ text, label }: { readonly text: string; readonly label: string }) => {
  const { data, size } = encode(text, { ecc: "M", border: QUIET_ZONE });
  const modules = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={modules.join("")} fill="#000" />
    </svg>
  );
};

/** Names in the order in which they exclude the following ones: each browser also claims to be older ones. */
const BROWSERS: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/\bEdgA?\/|\bEdgiOS\//, "Edge"],
  [/\bOPR\/|\bOpera\b/, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bChrome\/|\bChromium\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

const nameIn = (names: typeof BROWSERS, userAgent: string): string | undefined =>
  names.find(([pattern]) => pattern.test(userAgent))?.[1];

/** What people call the browser of a User-Agent header: "Firefox on Linux". */
export const browserName = (userAgent: string): string => {
  const browser = nameIn(BROWSERS, userAgent) ?? "Unknown browser";
  const system = nameIn(SYSTEMS, userAgent);
  return system === undefined ? browser : `${browser} on ${system}`;
};
