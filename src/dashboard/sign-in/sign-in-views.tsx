import { Empty } from "../components/empty.tsx";
import { Button, Field, PostForm } from "../components/form.tsx";
import { ButtonLink, Link } from "../components/link.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import type { View } from "../visit.ts";

/** The sign-in. `hasUsers` is false on a service that nobody has set up. */
export const signInView = (next: string, hasUsers: boolean): View => ({
  ...{ title: "Sign in", section: null },
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
export const codeView = (challenge: string, next: string): View => ({
  ...{ title: "Enter the code", section: null },
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
export const setupView = ({ token, accountName, email }: SetupFacts): View => ({
  ...{ title: "Set up your sign-in", section: null },
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
export const brokenLinkView = (message: string): View => ({
  ...{ title: "This link does not work", section: null, status: 404 },
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
