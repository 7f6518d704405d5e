import { z } from "zod";
import type { OwnSession, Profiles } from "../../accounts/profiles.ts";
import type { Sessions } from "../../accounts/sessions.ts";
import type { Users } from "../../accounts/users.ts";
import type { UserProblem } from "../../accounts/user-problems.ts";
import { AppError, type Result } from "../../foundation/base/errors.ts";
import type { Flash } from "../flash.ts";
import { formAction, page, type PageRoute } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import { requireSame, userRefusal } from "../user-refusal.ts";
import { profileView, recoveryCodesView } from "./profile-view.tsx";

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
      ...{ user, enrolment: profiles.findEnrolment(user.id), sessions: sessions.list(user.id) },
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
      return recoveryCodesView(viewer, codes, "Sign-in asks for a code from now on");
    },
    again,
  ),
  formAction(
    { path: `${PATH}/codes`, form: CODES_FORM },
    async ({ viewer, form: { change, present } }) => {
      if (change === "recovery") {
        const codes = orRefuse(await profiles.replaceRecoveryCodes(viewer.user.id, present));
        return recoveryCodesView(viewer, codes, "The former recovery codes work no longer");
      }
      orRefuse(await profiles.switchCodesOff(viewer.user.id, present));
      return done(viewer, { ok: "Sign-in asks for the password only." });
    },
    again,
  ),
];
