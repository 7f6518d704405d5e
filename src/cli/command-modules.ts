import type { Command } from "commander";
import type { Environment } from "../service/config.ts";
import type { Io } from "./io.ts";

/** Adds commands to the program. `readEnvironment` reads the settings again, for a reload. */
export type AddCommands = (program: Command, io: Io, readEnvironment: () => Environment) => void;

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
  { names: ["accounts"], load: async () => (await import("./accounts.ts")).addAccountCommands },
  { names: ["users"], load: async () => (await import("./users.ts")).addUserCommands },
  { names: ["keys"], load: async () => (await import("./keys.ts")).addKeyCommands },
  { names: ["credits"], load: async () => (await import("./credits.ts")).addCreditCommands },
  { names: ["usage"], load: async () => (await import("./usage.ts")).addUsageCommand },
  { names: ["audit"], load: async () => (await import("./audit.ts")).addAuditCommand },
  { names: ["suppress"], load: async () => (await import("./suppress.ts")).addSuppressCommands },
  { names: ["erase"], load: async () => (await import("./erase.ts")).addEraseCommand },
  { names: ["blocklist"], load: async () => (await import("./blocklist.ts")).addBlocklistCommands },
  {
    names: ["dmarc"],
    load: async () => {
      const { addDmarcCommands } = await import("./dmarc.ts");
      return (program, io) => addDmarcCommands(program, io);
    },
  },
  { names: ["jobs", "lists"], load: async () => (await import("./jobs.ts")).addJobCommands },
  { names: ["webhooks"], load: async () => (await import("./webhooks.ts")).addWebhookCommands },
  { names: ["notifications"], load: async () => (await import("./notifications.ts")).addNotificationCommands },
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
