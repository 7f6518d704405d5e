/** The section of the manual about each page of the dashboard: the first path that fits. */
const SECTIONS: ReadonlyArray<readonly [path: RegExp, section: string]> = [
  [/^\/verify/, "verify-an-address"],
  [/^\/lists/, "lists"],
  [/^\/dmarc\/[^/]+\/(advice|alerts|health|tls)/, "dmarc-alerts"],
  [/^\/dmarc\/[^/]+\/sources/, "dmarc-senders"],
  [/^\/dmarc/, "dmarc-reports"],
  [/^\/blocklists/, "blocklists"],
  [/^\/usage/, "dashboard#usage"],
  [/^\/webhooks/, "webhooks-and-mail"],
  [/^\/settings\/notifications/, "webhooks-and-mail#default-webhook-and-recipients"],
  [/^\/settings\/sender/, "sender-reputation"],
  [/^\/settings\/service/, "running-it#monitor-it"],
  [/^\/settings\/users/, "dashboard#users-and-roles"],
  [/^\/settings/, "dashboard#settings-pages"],
  [/^\/search/, "dashboard#find-anything"],
  [/^\/welcome/, "getting-started"],
];

/** The sections that pages lead to. */
export const HELP_SECTIONS = SECTIONS.map(([, section]) => section);

/** Where the manual says more about a page. */
export const helpPath = (path: string): string => {
  const [, section] = SECTIONS.find(([pattern]) => pattern.test(path)) ?? [];
  return section === undefined ? "/docs" : `/docs/${section}`;
};
