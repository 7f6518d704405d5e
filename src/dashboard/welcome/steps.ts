import type { FirstSteps } from "../../accounts/first-steps-store.ts";

/** A step of the page of first steps. `action`: where it is done, or the buttons that make keys. */
export interface Step {
  readonly title: string;
  readonly text: string;
  readonly isDone: boolean;
  readonly action: "keys" | { readonly text: string; readonly path: string };
}

/** The steps in their order. */
export const stepsOf = ({ hasKey, hasVerified, hasList, hasDomain, hasTarget }: FirstSteps): readonly Step[] => [
  {
    ...{ title: "Create an API key", isDone: hasKey, action: "keys" },
    text: "Programs use it. A test key returns fixed results for addresses such as deliverable@example.com.",
  },
  {
    ...{ title: "Verify an address", isDone: hasVerified, action: { text: "Verify one", path: "/verify" } },
    text: "Your own, for a start: you know what the result should be.",
  },
  {
    ...{ title: "Verify a list", isDone: hasList, action: { text: "Choose a file", path: "/lists" } },
    text: "A CSV or Excel file, or pasted addresses. You see the cost before it starts.",
  },
  {
    ...{ title: "Enroll a domain", isDone: hasDomain, action: { text: "Enroll one", path: "/dmarc" } },
    text: "Receivers then report who sends in its name. The first report takes 24 to 48 hours.",
  },
  {
    ...{ title: "Watch an address on blocklists", isDone: hasTarget, action: { text: "Add one", path: "/blocklists" } },
    text: "The addresses and domains that you send from. You are notified when one is listed and when it is delisted.",
  },
];
