import { type Command, Option } from "commander";
import { setupUrl } from "../accounts/setup-links.ts";
import type { UserProblem, User } from "../accounts/user-store.ts";
import type { InvitedUser, UserOfAccount } from "../accounts/users.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { addCommand, addGroup } from "./command.ts";
import { accountIdOf, administer, administerUntilDone, type Administration } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { baseUrlOf } from "../service/config.ts";
import { table, tableTime } from "./terminal-text.ts";

const userView = ({ store }: Administration, user: User) => ({
  ...{ id: user.id, email: user.email, account: store.findAccount(user.accountId)?.name ?? null, role: user.role },
  ...{ operator: user.isOperator, second_factor: user.hasSecondFactor, has_password: user.hasPassword },
  created_at: isoTime(user.createdAtMs),
  last_sign_in_at: user.lastSignInAtMs === null ? null : isoTime(user.lastSignInAtMs),
});

const stateOf = ({ user, linkExpiresAtMs }: UserOfAccount): string => {
  if (user.hasPassword) return user.hasSecondFactor ? "active, two factors" : "active";
  return linkExpiresAtMs === null ? "link expired" : "link open";
};

const USAGE_PROBLEMS: ReadonlySet<UserProblem["code"]> = new Set(["email_invalid", "password_invalid"]);

const userError = ({ code, message }: UserProblem): Error =>
  USAGE_PROBLEMS.has(code) ? new UsageError(message, code) : new CommandFailed(message, code);

const unknownUser = (email: string): CommandFailed =>
  new CommandFailed(
    `There is no user "${email}". \`postwarden users list\` lists all users.`,
    "unknown_user" satisfies UserProblem["code"],
  );

const findUser = ({ users }: Administration, email: string): User => {
  const user = users.findByEmail(email);
  if (user === undefined) throw unknownUser(email);
  return user;
};

/** The first line of standard input. */
const readPassword = async (io: Io): Promise<string> => {
  if (io.stdinIsTerminal) io.err("Type the password; it is shown while you type:");
  for await (const line of io.stdinLines()) return line;
  throw new UsageError("--password-stdin: no password on standard input.", "password_invalid");
};

interface Printed {
  readonly administration: Administration;
  readonly json: boolean | undefined;
}

const printLink = (io: Io, { administration, json }: Printed, { user, token, expiresAtMs }: InvitedUser): void => {
  const config = loadConfig(io);
  const setup_url = setupUrl(baseUrlOf(config, config.port), token);
  const expires_at = isoTime(expiresAtMs);
  print(io, json, { ...userView(administration, user), setup_url, expires_at }, () =>
    [
      `${setup_url}\n`,
      `Give this link to ${user.email}: it sets the password and works once, until ${tableTime(expires_at)}.`,
      ...(config.baseUrl === null
        ? ["Replace the beginning by the URL under which the service is reached, or set POSTWARDEN_BASE_URL."]
        : []),
    ].join("\n"),
  );
};

/** `users list | add | remove | reset` */
export const addUserCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "users", {
    description: "Add, remove and reset the users of the dashboard.",
    example: "users add ada@example.com",
  });
  addUserList(group, io);
  addUserAdd(group, io);
  addUserRemove(group, io);
  addUserReset(group, io);
};

const addUserList = (group: Command, io: Io): Command =>
  addCommand(group, "list", { description: "List users with their role and last sign-in.", example: "users list" })
    .option("--account <name>", "list only the users of this account")
    .action(({ account, json }: { account?: string; json?: boolean }) =>
      administerUntilDone(io, async (administration, db) => {
        const accountId = account === undefined ? undefined : accountIdOf(db, account);
        const listed = administration.snapshot(() => administration.users.list(accountId));
        const users = listed.map((one) => ({ ...userView(administration, one.user), state: stateOf(one) }));
        print(io, json, { users }, () =>
          table(
            ["EMAIL", "ACCOUNT", "ROLE", "STATE", "CREATED", "LAST SIGN-IN"],
            users.map(({ email, account: name, role, operator, state, created_at, last_sign_in_at }) => [
              ...[email, name ?? "", operator ? `${role}, operator` : role, state, tableTime(created_at)],
              tableTime(last_sign_in_at, "never"),
            ]),
            io.columns,
          ),
        );
      }),
    );

interface AddOptions {
  readonly account?: string;
  readonly role?: "owner" | "member";
  readonly operator?: boolean;
  readonly passwordStdin?: boolean;
  readonly json?: boolean;
}

const addUserAdd = (group: Command, io: Io): Command =>
  addCommand(group, "add", {
    description: "Add a user and print the one-time link by which the user sets a password.",
    example: "users add ada@example.com --account acme --role member",
  })
    .alias("create")
    .argument("<email>", "email address to sign in with")
    .option("--account <name>", "account of the user; required when there are several")
    .addOption(
      new Option(
        "--role <role>",
        "owner: everything; member: all but users, keys and settings (default: owner for the first user of an account)",
      ).choices(["owner", "member"]),
    )
    .option("--operator", "also show what concerns the whole service (default for the first user of all)")
    .option("--password-stdin", "read the password from standard input instead of printing a link")
    .action((email: string, options: AddOptions) =>
      administerUntilDone(io, async (administration, db) => {
        const { users } = administration;
        const accountId = accountIdOf(db, options.account);
        const role = options.role ?? (users.list(accountId).length === 0 ? "owner" : "member");
        const isOperator = options.operator ?? !users.hasUsers();
        const requested = { email, accountId, role, isOperator };
        const printed = { administration, json: options.json };
        if (options.passwordStdin === true) {
          const created = await users.create({ ...requested, password: await readPassword(io) }, null);
          if (!created.ok) throw userError(created.error);
          const { value } = created;
          print(io, options.json, userView(administration, value), () => `User ${value.email} is added.`);
          return;
        }
        const invited = users.invite(requested, null);
        if (!invited.ok) throw userError(invited.error);
        printLink(io, printed, invited.value);
      }),
    );

const addUserRemove = (group: Command, io: Io): Command =>
  addCommand(group, "remove", {
    description: "Remove a user, who is signed out at once.",
    example: "users remove ada@example.com",
  })
    .argument("<email>", "email address of the user")
    .action((email: string, { json }) =>
      administer(io, (administration) => {
        const removed = administration.users.remove(findUser(administration, email).id, null);
        if (!removed.ok) throw userError(removed.error);
        const { value } = removed;
        print(io, json, userView(administration, value), () => `User ${value.email} is removed.`);
      }),
    );

const addUserReset = (group: Command, io: Io): Command =>
  addCommand(group, "reset", {
    description:
      "Sign a user out everywhere, switch two-factor authentication off, and print a one-time link for a new password.",
    example: "users reset ada@example.com",
  })
    .alias("set-password")
    .argument("<email>", "email address of the user")
    .option("--password-stdin", "read the new password from standard input instead of printing a link")
    .action((email: string, { passwordStdin, json }: AddOptions) =>
      administerUntilDone(io, async (administration) => {
        const { users } = administration;
        const { id } = findUser(administration, email);
        if (passwordStdin === true) {
          const changed = await users.setPassword(id, await readPassword(io));
          if (!changed.ok) throw userError(changed.error);
          const { value } = changed;
          print(io, json, userView(administration, value), () => `The password of ${value.email} is set.`);
          return;
        }
        const reset = users.reset(id, null);
        if (!reset.ok) throw userError(reset.error);
        printLink(io, { administration, json }, reset.value);
      }),
    );
