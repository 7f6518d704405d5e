/**
 * Providers by the suffix of their mail hosts' names. `unverifiable`: their servers accept every recipient, or refuse
 * every one, whatever the mailbox, so that no reply of theirs to RCPT settles anything.
 */
const PROVIDERS: ReadonlyArray<{ readonly suffix: string; readonly name: string; readonly unverifiable: boolean }> = [
  { suffix: "yahoodns.net", name: "Yahoo", unverifiable: true },
];

/** The name of the unverifiable provider that a mail host belongs to, or null. */
export const unverifiableProvider = (mailHost: string): string | null => {
  const host = mailHost.toLowerCase();
  const hit = PROVIDERS.find(({ suffix }) => host === suffix || host.endsWith(`.${suffix}`));
  return hit?.unverifiable ? hit.name : null;
};
