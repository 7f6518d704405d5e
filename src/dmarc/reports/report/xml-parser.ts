import { SaxesParser } from "saxes";

/** Limits of what the parser buffers until a token ends. Reports stay far below: their longest value is a sentence. */
export const TOKEN_LIMITS = {
  /** Of a text, an attribute value, a comment, a section or an instruction. Longer ones are cut. */
  textCharactersMax: 64 * 1024,
  /** What is kept of one that is cut. */
  textCharactersKept: 4096,
  /** Of the name of an element, an attribute, an entity or an instruction's target. */
  nameCharactersMax: 1024,
} as const;

/** The characters that the parser gets at a time: how far it can exceed a limit before it is stopped. */
const CHUNK_CHARACTERS = 16_384;

/** The parser's buffers of names, and of what should become `<!--` or `<![CDATA[`. */
const NAME_FIELDS = ["name", "piTarget", "entity", "openWakaBang"] as const;

/** The five entities of XML and nothing that an object inherits: `&constructor;` is no entity. */
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", gt: ">", lt: "<", quot: '"', apos: "'" };

/**
 * A parser whose memory is bounded, whatever the input.
 *
 * saxes buffers a token until it ends, without a limit of its own: 64 MB of one CDATA section would take gigabytes. Its
 * buffers are not in its type declarations, so they are checked here.
 */
export const createXmlParser = () => {
  const parser = new SaxesParser({ xmlns: false, position: false });
  parser.ENTITIES = Object.assign(Object.create(null), ENTITIES);

  const gathered = (field: string): string => {
    const value: unknown = Reflect.get(parser, field);
    if (typeof value !== "string") throw new Error(`the XML parser has no field ${field} any more`);
    return value;
  };

  /** Cuts the token that has not ended yet; false when it is a name, which cannot be cut. */
  const bound = (): boolean => {
    const text = gathered("text");
    if (text.length > TOKEN_LIMITS.textCharactersMax) {
      Reflect.set(parser, "text", text.slice(0, TOKEN_LIMITS.textCharactersKept));
    }
    return NAME_FIELDS.every((field) => gathered(field).length <= TOKEN_LIMITS.nameCharactersMax);
  };

  return {
    parser,
    /** Parses until `isOver`. False when a name exceeds its limit. */
    read(piece: string, isOver: () => boolean): boolean {
      for (let at = 0; at < piece.length && !isOver(); at += CHUNK_CHARACTERS) {
        parser.write(piece.slice(at, at + CHUNK_CHARACTERS));
        if (!bound()) return false;
      }
      return true;
    },
  };
};
