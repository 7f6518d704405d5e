/** A section of the manual as a text names it: by the command that prints it. */
const HINT = /`postwarden help ([a-z0-9-]+(?:#[a-z0-9-]+)?)`/g;

/** Names a section, `page#section`, in a text for people. */
export const manualHint = (section: string): string => `\`postwarden help ${section}\``;

/** A text in pieces: every second one is a section that the text names, the others stand between. */
export const splitHints = (text: string): readonly string[] => text.split(HINT);

/** A text with the URLs of the sections that it names; `manualUrl` is that of the manual. */
export const withManualUrls = (text: string, manualUrl: string): string => text.replaceAll(HINT, `${manualUrl}/$1`);
