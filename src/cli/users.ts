import { setupUrl } from "../accounts/setup-links.ts";
import type { User, UserProblem } from "../accounts/user-store.ts";
import type { InvitedUser, UserOfAccount } from "../accounts/users.ts";
import { isoTime } from "../foundation/base/clock.ts";
import type { Result } from "../foundation/base/errors.ts";
import { baseUrlOf } from "../service/config.ts";
import { accountOption, argument, choice, command, group, option, type Terminal, toggle } from "./command.ts";
import { accountIdOf, type DatabaseContext, inDatabase } from "./data-directory.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { tableTime } from "./terminal-text.ts";

const viewOf = ({ store }: DatabaseContext, user: User) => ({
  id: user.id,
  email: user.email,
  account: store.findAccount(user.accountId)?.name ?? null,
  role: user.role,
  tag: user.tag,
  operator: user.isOperator,
  second_factor: user.hasSecondFactor,
  has_password: user.hasPassword,
  created_at: isoTime(user.createdAtMs),
  last_sign_in_at: user.lastSignInAtMs === null ? null : isoTime(user.lastSignInAtMs),
});

const roleText = ({ role, tag, operator }: Pick<ReturnType<typeof viewOf>, "role" | "tag" | "operator">): string =>
  operator ? `${role}, operator` : tag === null ? role : `${role} of ${tag}`;

const stateOf = ({ user, linkExpiresAtMs }: UserOfAccount): string => {
  if (user.hasPassword) return user.hasSecondFactor ? "active, two factors" : "active";
  return linkExpiresAtMs === null ? "link expired" : "link open";
};

const USAGE_PROBLEMS: ReadonlySet<UserProblem["code"]> = new Set(["email_invalid", "password_invalid"]);

const done = <T>(result: Result<T, UserProblem>): T => {
  if (result.ok) return result.value;
  const { code, message } = result.error;
  throw USAGE_PROBLEMS.has(code) ? new UsageError(message, code) : new CommandFailed(message, code);
};

const findUser = ({ users }: DatabaseContext, email: string): User => {
  const user = users.findByEmail(email);
  if (user !== undefined) return user;
  const code: UserProblem["code"] = "unknown_user";
  throw new CommandFailed(`There is no user "${email}". \`postwarden users list\` lists all users.`, code);
};

/** The first line of standard input. */
const readPassword = async (io: Io): Promise<string> => {
  if (io.stdinIsTerminal) io.err("Type the password; it is shown while you type:");
  for await (const line of io.stdinLines()) return line;
  throw new UsageError("--password-stdin: no password on standard input.", "password_invalid");
};

const showLink = (context: DatabaseContext & Terminal, { user, token, expiresAtMs }: InvitedUser): void => {
  const { config, print } = context;
  const setup_url = setupUrl(baseUrlOf(config, config.port), token);
  const expires_at = isoTime(expiresAtMs);
  const lines = [
    `${setup_url}\n`,
    `Give this link to ${user.email}: it sets the password and works once, until ${tableTime(expires_at)}.`,
    ...(config.baseUrl === null
      ? ["Replace the beginning by the URL under which the service is reached, or set POSTWARDEN_BASE_URL."]
      : []),
  ];
  print({ ...viewOf(context, user), setup_url, expires_at }, () => lines.join("\n"));
};

const EMAIL = { email: argument("<email>", "email address of the user") };

const USERS = group(
  { description: "Add, remove and reset the users of the dashboard.", example: "users add ada@example.com" },
  {
    list: command({
      description: "List users with their role and last sign-in.",
      example: "users list",
      on: inDatabase,
      options: { account: option("<name>", "list only the users of this account") },
      run(context, { account }) {
        const { db, snapshot, print, table } = context;
        const accountId = account === undefined ? undefined : accountIdOf(db, account);
        const listed = snapshot(() => context.users.list(accountId));
        const users = listed.map((one) => ({ ...viewOf(context, one.user), state: stateOf(one) }));
        const rows = users.map(({ email, account: name, role, tag, operator, state, created_at, last_sign_in_at }) => [
          ...[email, name ?? "", roleText({ role, tag, operator }), state, tableTime(created_at)],
          tableTime(last_sign_in_at, "never"),
        ]);
        print({ users }, () => table(["EMAIL", "ACCOUNT", "ROLE", "STATE", "CREATED", "LAST SIGN-IN"], rows));
      },
    }),
    add: command({
      description: "Add a user and print the one-time link by which the user sets a password.",
      example: "users add ada@example.com --account acme --role member",
      alias: "create",
      on: inDatabase,
      args: { email: argument("<email>", "email address to sign in with") },
      options: {
        account: { ...accountOption, description: "account of the user; required when there are several" },
        role: choice(
          "<role>",
          ["owner", "member", "viewer"],
          "owner: everything; member: all but users, keys and settings; viewer: reads the domains of one tag (default: owner for the first user of an account)",
        ),
        tag: option("<tag>", "the tag whose domains a viewer sees"),
        operator: toggle("also show what concerns the whole service (default for the first user of all)"),
        passwordStdin: toggle("read the password from standard input instead of printing a link"),
      },
      async run(context, { email, account, role: given, tag, operator, passwordStdin }) {
        const { users, db, io, print } = context;
        const accountId = accountIdOf(db, account);
        const role = given ?? (users.list(accountId).length === 0 ? "owner" : "member");
        if (tag !== undefined && role !== "viewer")
          throw new UsageError("--tag is for viewers. Add --role viewer.", "viewer_invalid");
        const requested = {
          email,
          accountId,
          role,
          tag: tag?.toLowerCase() ?? null,
          isOperator: operator || !users.hasUsers(),
        };
        if (!passwordStdin) return showLink(context, done(users.invite(requested, null)));
        const user = done(await users.create({ ...requested, password: await readPassword(io) }, null));
        print(viewOf(context, user), () => `User ${user.email} is added.`);
      },
    }),
    remove: command({
      description: "Remove a user, who is signed out at once.",
      example: "users remove ada@example.com",
      on: inDatabase,
      args: EMAIL,
      run(context, { email }) {
        const user = done(context.users.remove(findUser(context, email).id, null));
        context.print(viewOf(context, user), () => `User ${user.email} is removed.`);
      },
    }),
    reset: command({
      description:
        "Sign a user out everywhere, switch two-factor authentication off, and print a one-time link for a new password.",
      example: "users reset ada@example.com",
      alias: "set-password",
      on: inDatabase,
      args: EMAIL,
      options: { passwordStdin: toggle("read the new password from standard input instead of printing a link") },
      async run(context, { email, passwordStdin }) {
        const { users, io, print } = context;
        const { id } = findUser(context, email);
        if (!passwordStdin) return showLink(context, done(users.reset(id, null)));
        const user = done(await users.setPassword(id, await readPassword(io)));
        print(viewOf(context, user), () => `The password of ${user.email} is set.`);
      },
    }),
  },
);

export const USER_COMMANDS = { users: USERS };
