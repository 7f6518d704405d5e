const AREAS = ["verifications", "bulk", "dmarc", "blacklist", "webhooks"] as const;

export type Scope = `${(typeof AREAS)[number]}:${"read" | "write"}`;

/** Every scope a key can have. A new key has all of them by default. */
export const SCOPES: readonly Scope[] = AREAS.flatMap((area): Scope[] => [`${area}:read`, `${area}:write`]);

export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text);

/** Whether `scopes` include `required`; write includes read. */
export const allows = (scopes: readonly string[], required: Scope): boolean =>
  scopes.includes(required) || scopes.includes(required.replace(":read", ":write"));
