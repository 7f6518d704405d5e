/** A message with its length before it (RFC 1035 §4.2.2). */
export const frame = (message: Uint8Array): Uint8Array => {
  const framed = new Uint8Array(2 + message.length);
  new DataView(framed.buffer).setUint16(0, message.length);
  framed.set(message, 2);
  return framed;
};

/** Collects the first framed message from chunks of any size: 65,535 octets at most, whatever follows is dropped. */
export const createFrameReader = (): ((chunk: Uint8Array) => Uint8Array | undefined) => {
  let length: number | undefined;
  let buffer = new Uint8Array(2);
  let received = 0;
  return (chunk) => {
    let rest = chunk;
    for (;;) {
      const taken = rest.subarray(0, buffer.length - received);
      buffer.set(taken, received);
      received += taken.length;
      if (received < buffer.length) return undefined;
      if (length !== undefined) return buffer;
      // The prefix is whole: from here on the message itself is collected.
      length = new DataView(buffer.buffer).getUint16(0);
      buffer = new Uint8Array(length);
      received = 0;
      rest = rest.subarray(taken.length);
    }
  };
};
