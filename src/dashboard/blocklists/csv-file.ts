const encoder = new TextEncoder();

/** A file of lines as they are read, with a name that needs no quoting. */
export const csvFile = (name: string, lines: AsyncGenerator<string>): Response =>
  new Response(
    new ReadableStream({
      async pull(controller) {
        const { value, done } = await lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await lines.return(undefined);
      },
    }),
    {
      headers: {
        "content-type": "text/csv; charset=utf-8",
        "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9._-]+/g, "_")}"`,
      },
    },
  );
