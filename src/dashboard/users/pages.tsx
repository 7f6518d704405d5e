import { z } from "zod";
import type { InvitedUser, UserActor, UserOfAccount, Users } from "../../accounts/users.ts";
import { setupUrl } from "../../accounts/setup-links.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { readSessionToken } from "../cookies.ts";
import { formAction, page, type PageRoute } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import { userRefusal } from "../user-refusal.ts";
import { linkView, usersView, userView } from "./users-view.tsx";

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
  /** As set; null: links begin with the host of the request. */
  readonly baseUrl: string | null;
  /** Mails a link, and says whether that worked; null where the service sends no mail. */
  readonly mail: ((invitation: Invitation) => Promise<boolean>) | null;
}

const PATH = "/settings/users";
const ROLE = z.enum(["owner", "member"]);
const INVITE_FORM = z.object({ email: z.string().max(500), role: ROLE });
const USER_PATH = z.object({ id: z.string() });

const actorOf = ({ user, account }: Viewer): UserActor => ({
  ...{ id: user.id, isOperator: user.isOperator, accountId: account.id },
});

/** The URL of this site as the browser of the request sees it. */
const originOf = (request: Request): string =>
  `${readSessionToken(request, true) === null ? "http" : "https"}://${new URL(request.url).host}`;

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

/** The users of an account, for its owners. */
export const createUserPages = (parts: UserPagesParts): readonly PageRoute[] => {
  const { users } = parts;
  const again = againWith(users);
  return [
    page({ path: PATH }, ({ viewer }) => usersView(viewer, users.list(viewer.account.id))),
    page({ path: `${PATH}/:id`, params: USER_PATH }, ({ viewer, params }) =>
      userView(viewer, findOne(users, viewer, params.id)),
    ),
    ...createLinkActions(parts),
    formAction(
      { path: `${PATH}/:id/role`, params: USER_PATH, form: z.object({ role: ROLE }) },
      ({ viewer, params: { id }, form }) => {
        const changed = users.changeRole(id, form.role, actorOf(viewer));
        if (!changed.ok) throw userRefusal(changed.error);
        const isDemoted = id === viewer.user.id && form.role === "member";
        const ok = `${changed.value.email} is now ${form.role === "owner" ? "an owner" : "a member"}.`;
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
const createLinkActions = ({ users, baseUrl, mail }: UserPagesParts): readonly PageRoute[] => {
  /** Links to a host that only this request has named are not mailed. */
  const showLink = async (request: Request, viewer: Viewer, invited: InvitedUser): Promise<View> => {
    const { user, token, expiresAtMs } = invited;
    const url = setupUrl(baseUrl ?? originOf(request), token);
    const isMailed =
      mail === null || baseUrl === null
        ? null
        : await mail({ email: user.email, account: viewer.account.name, path: setupUrl("", token), expiresAtMs });
    return linkView(viewer, invited, { url, isMailed });
  };
  return [
    formAction(
      { path: PATH, form: INVITE_FORM },
      ({ request, viewer, form }) => {
        const invited = users.invite({ ...form, accountId: viewer.account.id, isOperator: false }, actorOf(viewer));
        if (!invited.ok) throw userRefusal(invited.error);
        return showLink(request, viewer, invited.value);
      },
      { rerender: ({ viewer }) => usersView(viewer, users.list(viewer.account.id)) },
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
