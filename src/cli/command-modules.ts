import type { Command } from "commander";
import type { Environment } from "../service/config.ts";
import { addTrees, type CommandTrees } from "./command.ts";
import type { Io } from "./io.ts";

/** Adds commands to the program. `readEnvironment` reads the settings again, for a reload. */
export type AddCommands = (program: Command, io: Io, readEnvironment: () => Environment) => void;

const declared =
  (commands: CommandTrees): AddCommands =>
  (program, io, readEnvironment) =>
    addTrees(program, { io, readEnvironment }, commands);

interface CommandModule {
  readonly names: readonly string[];
  readonly load: () => Promise<AddCommands>;
}

/** Every command and the module that adds it, in the order of the help. */
const MODULES: readonly CommandModule[] = [
  { names: ["serve"], load: async () => (await import("./serve.ts")).addServeCommand },
  { names: ["verify"], load: async () => (await import("./verify.ts")).addVerifyCommand },
  {
    names: ["inspect"],
    load: async () => {
      const { addInspectCommands } = await import("./inspect.ts");
      return (program, io) => addInspectCommands(program, io);
    },
  },
  { names: ["accounts"], load: async () => declared((await import("./accounts.ts")).ACCOUNT_COMMANDS) },
  { names: ["users"], load: async () => declared((await import("./users.ts")).USER_COMMANDS) },
  { names: ["keys"], load: async () => declared((await import("./keys.ts")).KEY_COMMANDS) },
  { names: ["credits"], load: async () => declared((await import("./accounts.ts")).CREDIT_COMMANDS) },
  { names: ["usage"], load: async () => declared((await import("./usage.ts")).USAGE_COMMANDS) },
  { names: ["audit"], load: async () => declared((await import("./accounts.ts")).AUDIT_COMMANDS) },
  { names: ["suppress"], load: async () => declared((await import("./suppress.ts")).SUPPRESS_COMMANDS) },
  { names: ["erase"], load: async () => (await import("./erase.ts")).addEraseCommand },
  { names: ["blocklist"], load: async () => (await import("./blocklist.ts")).addBlocklistCommands },
  {
    names: ["dmarc"],
    load: async () => {
      const { addDmarcCommands } = await import("./dmarc.ts");
      return (program, io) => addDmarcCommands(program, io);
    },
  },
  { names: ["jobs", "lists"], load: async () => declared((await import("./jobs.ts")).LIST_COMMANDS) },
  { names: ["webhooks"], load: async () => declared((await import("./webhooks.ts")).WEBHOOK_COMMANDS) },
  { names: ["notifications"], load: async () => declared((await import("./notifications.ts")).NOTIFICATION_COMMANDS) },
  { names: ["doctor"], load: async () => (await import("./doctor.ts")).addDoctorCommand },
  { names: ["backup", "restore"], load: async () => (await import("./backup.ts")).addBackupCommands },
  { names: ["compact"], load: async () => (await import("./compact.ts")).addCompactCommand },
  {
    names: ["migrate", "config", "version"],
    load: async () => (await import("./maintenance.ts")).addMaintenanceCommands,
  },
];

/**
 * Loads the module of the command that a command line begins with; all modules for everything else, for example options of the
 * program, help and typing errors.
 */
export const loadCommands = (args: readonly string[]): Promise<AddCommands[]> => {
  const named = MODULES.filter(({ names }) => names.includes(args[0] ?? ""));
  return Promise.all((named.length > 0 ? named : MODULES).map(({ load }) => load()));
};
