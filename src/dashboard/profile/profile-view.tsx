import type { CodeEnrolment } from "../../accounts/profiles.ts";
import type { ListedSession } from "../../accounts/sessions.ts";
import type { User } from "../../accounts/user.ts";
import { Badge } from "../components/badge.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import { ButtonLink } from "../components/link.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { QrCode } from "../components/qr-code.tsx";
import { SettingsTabs } from "../components/settings-tabs.tsx";
import { Time } from "../components/time.tsx";
import type { View, Viewer } from "../visit.ts";
import { browserName } from "./browser-name.ts";

export interface ProfileFacts {
  readonly user: User;
  readonly enrolment: CodeEnrolment | null;
  readonly sessions: readonly ListedSession[];
}

const ZONES = Intl.supportedValuesOf("timeZone");

/** The page of one's own user. */
export const profileView = (viewer: Viewer, { user, enrolment, sessions }: ProfileFacts): View => ({
  ...{ title: "Profile", section: "settings" },
  body: (
    <>
      <PageHead title="Profile" />
      <SettingsTabs viewer={viewer} current="/settings/profile" />
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

const Enrolling = ({ enrolment: { secret, uri } }: { readonly enrolment: CodeEnrolment }) => (
  <div class="stack">
    <p>
      Scan this with the app (Aegis, Google Authenticator, 1Password and others), then enter the code that it shows.
    </p>
    <QrCode text={uri} label="QR code for the authenticator app" />
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
export const recoveryCodesView = (viewer: Viewer, codes: readonly string[], title: string): View => ({
  ...{ title: "Recovery codes", section: "settings" },
  body: (
    <>
      <PageHead title="Recovery codes" crumbs={[["Profile", "/settings/profile"]]} />
      <SettingsTabs viewer={viewer} current="/settings/profile" />
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
