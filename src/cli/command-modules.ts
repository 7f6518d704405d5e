import type { CommandTrees } from "./command.ts";

interface CommandModule {
  readonly names: readonly string[];
  readonly load: () => Promise<CommandTrees>;
}

/** Every command and the module that adds it, in the order of the help. */
const MODULES: readonly CommandModule[] = [
  { names: ["serve"], load: async () => (await import("./serve.ts")).SERVE_COMMANDS },
  { names: ["verify"], load: async () => (await import("./verify.ts")).VERIFY_COMMANDS },
  { names: ["inspect"], load: async () => (await import("./inspect.ts")).inspectCommands() },
  { names: ["accounts"], load: async () => (await import("./accounts.ts")).ACCOUNT_COMMANDS },
  { names: ["users"], load: async () => (await import("./users.ts")).USER_COMMANDS },
  { names: ["keys"], load: async () => (await import("./keys.ts")).KEY_COMMANDS },
  { names: ["credits"], load: async () => (await import("./accounts.ts")).CREDIT_COMMANDS },
  { names: ["usage"], load: async () => (await import("./usage.ts")).USAGE_COMMANDS },
  { names: ["audit"], load: async () => (await import("./accounts.ts")).AUDIT_COMMANDS },
  { names: ["suppress"], load: async () => (await import("./suppress.ts")).SUPPRESS_COMMANDS },
  { names: ["export"], load: async () => (await import("./export.ts")).EXPORT_COMMANDS },
  { names: ["erase"], load: async () => (await import("./erase.ts")).ERASE_COMMANDS },
  { names: ["blocklist"], load: async () => (await import("./blocklist.ts")).BLOCKLIST_COMMANDS },
  { names: ["dmarc"], load: async () => (await import("./dmarc.ts")).dmarcCommands() },
  { names: ["bounces"], load: async () => (await import("./bounces.ts")).BOUNCE_COMMANDS },
  { names: ["lists"], load: async () => (await import("./lists.ts")).LIST_COMMANDS },
  { names: ["webhooks"], load: async () => (await import("./webhooks.ts")).WEBHOOK_COMMANDS },
  { names: ["notifications"], load: async () => (await import("./notifications.ts")).NOTIFICATION_COMMANDS },
  { names: ["mcp"], load: async () => (await import("./mcp.ts")).MCP_COMMANDS },
  { names: ["status"], load: async () => (await import("./status.ts")).STATUS_COMMANDS },
  { names: ["doctor"], load: async () => (await import("./doctor.ts")).DOCTOR_COMMANDS },
  { names: ["backup", "restore"], load: async () => (await import("./backup.ts")).BACKUP_COMMANDS },
  { names: ["purge"], load: async () => (await import("./purge.ts")).PURGE_COMMANDS },
  { names: ["compact"], load: async () => (await import("./compact.ts")).COMPACT_COMMANDS },
  {
    names: ["migrate", "config", "version"],
    load: async () => (await import("./maintenance.ts")).MAINTENANCE_COMMANDS,
  },
  { names: ["completion"], load: async () => (await import("./completion.ts")).COMPLETION_COMMANDS },
  { names: ["help"], load: async () => (await import("./help.ts")).HELP_COMMANDS },
];

/**
 * Loads the module of the command that a command line begins with; all modules for everything else, for example options of the
 * program, help and typing errors.
 */
export const loadCommands = (args: readonly string[]): Promise<CommandTrees[]> => {
  const named = MODULES.filter(({ names }) => names.includes(args[0] ?? ""));
  return Promise.all((named.length > 0 ? named : MODULES).map(({ load }) => load()));
};
