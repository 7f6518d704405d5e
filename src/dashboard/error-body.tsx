import type { View } from "./visit.ts";
import { Empty } from "./components/empty.tsx";
import { ButtonLink } from "./components/link.tsx";

/** An error that a person sees. */
export interface PageError {
  readonly status: number;
  readonly message?: string;
  /** Identifies the request in the log. */
  readonly requestId?: string;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "This request cannot be read",
  402: "Not enough credits",
  403: "Not allowed",
  404: "Page not found",
  405: "Not possible",
  409: "Not possible right now",
  413: "Too large",
  415: "Not supported",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Temporarily unavailable",
};

const MESSAGES: Readonly<Record<number, string>> = {
  404: "There is nothing at this address, or it belongs to another account or to the other mode (live or test).",
  500: "This is a defect of the service. Nothing was lost. The operator finds the details in the log.",
};

/** The page of an error: what happened and where to go on. */
export const ErrorBody = ({ status, message, requestId }: PageError): View => {
  const title = TITLES[status] ?? "This did not work";
  return {
    ...{ title, section: null },
    body: (
      <Empty title={title} isPage action={<ButtonLink href="/">Go to the home page</ButtonLink>}>
        <p>{(status === 500 ? undefined : message) ?? MESSAGES[status] ?? "Try again."}</p>
        {status >= 500 && requestId !== undefined && (
          <p class="soft">
            Request <code>{requestId}</code>
          </p>
        )}
      </Empty>
    ),
  };
};
