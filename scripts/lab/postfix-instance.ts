import { join } from "node:path";
import { inNamespace } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const MASTER = "/usr/lib/postfix/sbin/master";

export interface PostfixInstance {
  /** What the supervisor calls it. */
  readonly name: string;
  /** Holds main.cf, master.cf and the empty directories `queue` and `data`. */
  readonly directory: string;
  /** Files that it sees in the place of others: the path there → the path here. */
  readonly files: Readonly<Record<string, string>>;
}

/** The beginning of a main.cf: an instance that lives in `directory`, and touches nothing of /etc/postfix. */
export const mainCfHead = (directory: string): string => `compatibility_level = 3.6
queue_directory = ${directory}/queue
data_directory = ${directory}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = ${directory}/mail.log
maillog_file_prefixes = ${directory}
`;

/** Starts a Postfix as its directory says, in a mount namespace of its own. It may not listen yet. */
export const startInstance = async (supervisor: Supervisor, instance: PostfixInstance): Promise<void> => {
  const { name, directory, files } = instance;
  await supervisor.run(["chown", "postfix", join(directory, "data")]);
  await supervisor.run(["postfix", "-c", directory, "check"]);
  supervisor.start({
    name,
    argv: inNamespace({ files }, [MASTER, "-c", directory]),
    env: { MAIL_CONFIG: directory },
    makesOwnSession: true,
  });
};
