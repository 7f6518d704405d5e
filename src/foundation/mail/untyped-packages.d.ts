/** The one function of tr46 that Postwarden calls in each direction (UTS 46 §4); null and `error` mean "not a domain name". */
declare module "tr46" {
  export interface UnicodeOptions {
    readonly checkBidi?: boolean;
    readonly checkHyphens?: boolean;
    readonly checkJoiners?: boolean;
    readonly ignoreInvalidPunycode?: boolean;
    readonly transitionalProcessing?: boolean;
    readonly useSTD3ASCIIRules?: boolean;
  }
  export interface AsciiOptions extends UnicodeOptions {
    readonly verifyDNSLength?: boolean;
  }
  export function toASCII(domain: string, options?: AsciiOptions): string | null;
  export function toUnicode(
    domain: string,
    options?: UnicodeOptions,
  ): { readonly domain: string; readonly error: boolean };
}

/** Local parts in four groups, all lower case ASCII. */
declare module "role-based-email-addresses/src/index.js" {
  export const MARKETING: readonly string[];
  export const NOTIFICATION: readonly string[];
  export const MEETING: readonly string[];
  export const OTHER: readonly string[];
}
