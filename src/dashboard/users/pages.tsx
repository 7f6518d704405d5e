import { z } from "zod";
import type { InvitedUser, UserActor, UserOfAccount, Users } from "../../accounts/users.ts";
import { setupUrl } from "../../accounts/setup-links.ts";
import { AppError } from "../../foundation/base/errors.ts";
import type { UrlOfRequest } from "../../foundation/http/request-target.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { formAction, page, type PageRoute, optionalText } from "../page.ts";
import { userRefusal } from "../user-refusal.ts";
import type { User } from "../../accounts/user-store.ts";
import { Badge, ButtonLink, Link } from "../components/inline.tsx";
import { CopyBlock } from "../components/copy.tsx";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/figures.tsx";

/** A one-time link that is to be mailed. */
export interface Invitation {
  readonly email: string;
  readonly account: string;
  /** The path of its page. */
  readonly path: string;
  readonly expiresAtMs: number;
}

export interface UserPagesParts {
  readonly users: Users;
  /** As set; null: links begin with the host of the request, and are not mailed. */
  readonly baseUrl: string | null;
  readonly urlOf: UrlOfRequest;
  /** Mails a link, and says whether that worked; null where the service sends no mail. */
  readonly mail: ((invitation: Invitation) => Promise<boolean>) | null;
}

const PATH = "/settings/users";
const ROLE = z.enum(["owner", "member", "viewer"]);
const TAG_CHARACTERS_MAX = 40;
/** As tags of domains are stored: in lower case. */
const tag = optionalText(TAG_CHARACTERS_MAX).transform((text) => text?.toLowerCase() ?? null);
const INVITE_FORM = z.object({ email: z.string().max(500), role: ROLE, tag });
const USER_PATH = z.object({ id: z.string() });

const actorOf = ({ user, account }: Viewer): UserActor => ({
  id: user.id,
  isOperator: user.isOperator,
  accountId: account.id,
});

/** The page of one user again, with what is wrong. */
const againWith = (users: Users) => ({
  rerender: ({ viewer, params }: { readonly viewer: Viewer; readonly params: { readonly id: string } }) =>
    userView(viewer, findOne(users, viewer, params.id)),
});

const findOne = (users: Users, viewer: Viewer, id: string): UserOfAccount => {
  const found = users.list(viewer.account.id).find(({ user }) => user.id === id);
  if (found === undefined) throw new AppError("not_found", { message: "There is no such user." });
  return found;
};

/** Links to a host that only the request has named are not mailed. */
const mailsLinks = ({ mail, baseUrl }: UserPagesParts): boolean => mail !== null && baseUrl !== null;

/** The users of an account, for its owners. */
export const createUserPages = (parts: UserPagesParts): readonly PageRoute[] => {
  const { users } = parts;
  const again = againWith(users);
  return [
    page({ path: PATH }, ({ viewer }) => usersView(viewer, users.list(viewer.account.id), mailsLinks(parts))),
    page({ path: `${PATH}/:id`, params: USER_PATH }, ({ viewer, params }) =>
      userView(viewer, findOne(users, viewer, params.id)),
    ),
    ...createLinkActions(parts),
    formAction(
      { path: `${PATH}/:id/role`, params: USER_PATH, form: z.object({ role: ROLE, tag }) },
      ({ viewer, params: { id }, form }) => {
        const changed = users.changeRole(id, form.role, actorOf(viewer), form.tag);
        if (!changed.ok) throw userRefusal(changed.error);
        const isDemoted = id === viewer.user.id && form.role !== "owner";
        const ok = `${changed.value.email} is now ${form.role === "owner" ? "an owner" : `a ${form.role}`}.`;
        return redirectTo(viewer, isDemoted ? "/settings/profile" : `${PATH}/${id}`, { ok });
      },
      again,
    ),
    formAction(
      { path: `${PATH}/:id/remove`, params: USER_PATH },
      ({ viewer, params }) => {
        const removed = users.remove(params.id, actorOf(viewer));
        if (!removed.ok) throw userRefusal(removed.error);
        return redirectTo(viewer, PATH, { ok: `${removed.value.email} is removed.` });
      },
      again,
    ),
  ];
};

/** Invitations and resets: both show a one-time link. */
const createLinkActions = (parts: UserPagesParts): readonly PageRoute[] => {
  const { users, urlOf, mail } = parts;
  const sendsMail = mailsLinks(parts);
  const showLink = async (request: Request, viewer: Viewer, invited: InvitedUser): Promise<View> => {
    const { user, token, expiresAtMs } = invited;
    const url = setupUrl(urlOf(request), token);
    const isMailed =
      mail === null || !sendsMail
        ? null
        : await mail({ email: user.email, account: viewer.account.name, path: setupUrl("", token), expiresAtMs });
    return linkView(invited, { url, isMailed });
  };
  return [
    formAction(
      { path: PATH, form: INVITE_FORM },
      ({ request, viewer, form }) => {
        const invited = users.invite({ ...form, accountId: viewer.account.id, isOperator: false }, actorOf(viewer));
        if (!invited.ok) throw userRefusal(invited.error);
        return showLink(request, viewer, invited.value);
      },
      { rerender: ({ viewer }) => usersView(viewer, users.list(viewer.account.id), sendsMail) },
    ),
    formAction(
      { path: `${PATH}/:id/reset`, params: USER_PATH },
      ({ request, viewer, params }) => {
        if (params.id === viewer.user.id)
          throw new AppError("conflict", { message: "Change your own password on your profile." });
        const reset = users.reset(params.id, actorOf(viewer));
        if (!reset.ok) throw userRefusal(reset.error);
        return showLink(request, viewer, reset.value);
      },
      againWith(users),
    ),
  ];
};

const ROLES = [
  ["member", "Member"],
  ["owner", "Owner"],
  ["viewer", "Viewer of one tag"],
] as const;

const ROLES_HINT =
  "Members verify, upload lists and reports, read results and reports, and act on alerts. Owners also manage domains, blocklist targets, webhooks, keys, users and settings. Viewers only read the DMARC pages of the domains with one tag.";

/** The users of the viewer's account. */
const usersView = (viewer: Viewer, users: readonly UserOfAccount[], isMailed: boolean): View => ({
  title: "Users",
  section: "settings",
  body: (
    <>
      <PageHead title="Users" meta={`of the account ${viewer.account.name}`} />
      <Columns side={<InvitePanel isMailed={isMailed} isOperator={viewer.user.isOperator} />}>
        <Panel title="Who can sign in" isFlush>
          <ul class="items people">
            {users.map((one) => (
              <li key={one.user.id}>
                <h3>
                  <Link href={`${PATH}/${one.user.id}`}>{one.user.email}</Link>
                  {one.user.id === viewer.user.id && <span class="soft"> (you)</span>}
                </h3>
                <State {...one} />
                <p class="detail">
                  {roleText(one.user)} ·{" "}
                  {one.user.lastSignInAtMs === null ? (
                    "never signed in"
                  ) : (
                    <>
                      last sign-in <Time atMs={one.user.lastSignInAtMs} />
                    </>
                  )}
                </p>
              </li>
            ))}
          </ul>
        </Panel>
      </Columns>
    </>
  ),
});

const roleText = ({ role, tag: seen, isOperator }: User): string =>
  isOperator ? `${role}, operator` : seen === null ? role : `${role} of ${seen}`;

const State = ({ user, linkExpiresAtMs }: UserOfAccount) => {
  if (user.hasSecondFactor)
    return (
      <Badge kind="ok" icon="shield-check">
        Two factors
      </Badge>
    );
  if (user.hasPassword)
    return (
      <Badge kind="info" icon="key-round">
        Password
      </Badge>
    );
  return linkExpiresAtMs === null ? (
    <Badge kind="warn">Link expired</Badge>
  ) : (
    <Badge kind="unknown" icon="clock">
      Link until <Time atMs={linkExpiresAtMs} style="day" />
    </Badge>
  );
};

const LastSignIn = ({ user: { lastSignInAtMs } }: { readonly user: User }) =>
  lastSignInAtMs === null ? <span class="soft">never</span> : <Time atMs={lastSignInAtMs} />;

interface InviteProps {
  /** Whether the service mails the links of invitations. */
  readonly isMailed: boolean;
  readonly isOperator: boolean;
}

const InvitePanel = ({ isMailed, isOperator }: InviteProps) => (
  <Panel title="Invite a user">
    <PostForm action={PATH} class="form">
      <Field name="email" label="Email address" type="email" autocomplete="off" isRequired />
      <SelectField name="role" label="Role" options={ROLES} value="member" hint={ROLES_HINT} />
      <Field name="tag" label="Tag, for a viewer" value={null} />
      <Button kind="main" icon="plus">
        Create an invitation
      </Button>
      <p class="hint">
        {isMailed ? "The user gets a one-time link by mail." : "You get a one-time link to pass on."}
        {!isMailed && isOperator && " To mail it, set up alert mail and POSTWARDEN_BASE_URL."}
      </p>
    </PostForm>
  </Panel>
);

interface LinkFacts {
  readonly url: string;
  /** Whether the link was mailed; null where the service does not mail it. */
  readonly isMailed: boolean | null;
}

/** The one-time link of a user, which is shown only once. */
const linkView = ({ user: { id, email }, expiresAtMs }: InvitedUser, { url, isMailed }: LinkFacts): View => ({
  title: "One-time link",
  section: "settings",
  isShownOnce: true,
  body: (
    <>
      <PageHead title={email} isMono crumbs={[["Users", PATH]]} />
      <Callout
        kind={isMailed === false ? "warn" : "ok"}
        title={isMailed === true ? `The link was mailed to ${email}` : `Give this link to ${email}`}
        actions={<ButtonLink href={`${PATH}/${id}`}>Done</ButtonLink>}
      >
        {isMailed === false && <p>The mail could not be sent, so pass the link on yourself.</p>}
        <p>
          It sets the password and works once, until <Time atMs={expiresAtMs} style="full" />. It is shown only now;
          whoever has it can sign in as this user.
        </p>
        <CopyBlock text={url} label="One-time link" />
      </Callout>
    </>
  ),
});

/** One user: what it may do, and what can be done about it. */
const userView = (viewer: Viewer, one: UserOfAccount): View => {
  const { user } = one;
  const isSelf = user.id === viewer.user.id;
  const mayChange = !user.isOperator || viewer.user.isOperator;
  return {
    title: user.email,
    section: "settings",
    body: (
      <>
        <PageHead title={user.email} isMono crumbs={[["Users", PATH]]} meta={isSelf ? "This is you" : undefined} />
        <Columns side={<UserFacts {...one} />}>
          {mayChange ? (
            <UserForms user={user} isSelf={isSelf} />
          ) : (
            <Panel>
              <p>This user is an operator of the service. Only operators can change operators.</p>
            </Panel>
          )}
        </Columns>
      </>
    ),
  };
};

const UserFacts = (one: UserOfAccount) => (
  <Panel title="User" isFlush>
    <Rows>
      <Row label="Role">{roleText(one.user)}</Row>
      <Row label="Sign-in">
        <State {...one} />
      </Row>
      <Row label="Last sign-in">
        <LastSignIn user={one.user} />
      </Row>
      <Row label="Added">
        <Time atMs={one.user.createdAtMs} style="day" />
      </Row>
    </Rows>
  </Panel>
);

const UserForms = ({ user, isSelf }: { readonly user: User; readonly isSelf: boolean }) => (
  <>
    <Panel title="Role">
      <PostForm action={`${PATH}/${user.id}/role`} class="form">
        <SelectField name="role" label="Role" options={ROLES} value={user.role} hint={ROLES_HINT} />
        <Field name="tag" label="Tag, for a viewer" value={user.tag} />
        <Button>Change the role</Button>
      </PostForm>
    </Panel>
    {!isSelf && (
      <Panel title={user.hasPassword ? "Lost password or phone" : "New link"}>
        <PostForm action={`${PATH}/${user.id}/reset`} class="form">
          <p>
            {user.hasPassword
              ? "The password and the codes of the app stop working, the user is signed out everywhere, and you get a one-time link for a new password."
              : "The former link stops working, and you get a new one."}
          </p>
          <Button>Create a new link</Button>
        </PostForm>
      </Panel>
    )}
    <Panel title={isSelf ? "Remove yourself" : "Remove"}>
      <PostForm action={`${PATH}/${user.id}/remove`} class="form">
        <p>
          {isSelf ? "You are" : "The user is"} signed out everywhere at once. Keys, lists and everything else of the
          account stay.
        </p>
        <Button kind="danger" icon="trash-2">
          {isSelf ? "Remove yourself" : "Remove this user"}
        </Button>
      </PostForm>
    </Panel>
  </>
);
