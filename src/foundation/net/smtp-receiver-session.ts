import type { Socket } from "node:net";
import { MailBuffer, type ConnectionSlot } from "./smtp-receiver-load.ts";
import {
  type ReceiverDeadline,
  ReceiverDeadlines,
  contentRefusal,
  DEADLINE_TEXTS,
  FIXED_REPLIES,
  formatReply,
  REPLIES,
  type ReceiverReply,
} from "./smtp-receiver-replies.ts";
import { ReceiverEnvelope, splitCommand } from "./smtp-receiver-envelope.ts";
import type { AcceptOutcome, ReceivedMail, ReceiverContext, RecipientVerdict } from "./smtp-receiver-rules.ts";
import { SmtpServerSocket } from "./smtp-server-socket.ts";

/** A connection that was accepted. */
interface AcceptedConnection {
  readonly socket: Socket;
  /** The client's IP address. */
  readonly client: string;
  readonly slot: ConnectionSlot;
  /** Called once, when the connection has closed. */
  readonly onClosed: () => void;
}

const EXTENSIONS = ["PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"];

/** A request that a web page made a browser send here. */
const HTTP_REQUEST = /^(?:OPTIONS|GET|HEAD|POST|PUT|DELETE|TRACE|CONNECT) .* HTTP\/\d\.\d$/i;

/** One client's SMTP session with the receiver (RFC 5321): its commands, its limits, and the mail that is under way. */
export class ReceiverSession {
  readonly #socket: SmtpServerSocket;
  readonly #deadlines: ReceiverDeadlines;
  readonly #envelope = new ReceiverEnvelope();
  /** The mail whose content is being received or accepted. */
  #mail: MailBuffer | null = null;
  #isClosing: boolean = false;
  #isFarewell: boolean = false;
  #isClosed: boolean = false;
  #repliesSinceMail = 0;
  #mails = 0;
  #unknownRecipients = 0;
  #refusedCommands = 0;

  constructor(
    private readonly context: ReceiverContext,
    private readonly connection: AcceptedConnection,
  ) {
    this.#deadlines = new ReceiverDeadlines(context.clock, context.limits, (passed) => this.#endOverdue(passed));
    this.#socket = new SmtpServerSocket(connection.socket, () => this.#closed());
  }

  /** Serves the connection until it closes. */
  async run(): Promise<void> {
    const { hostName, limits, log } = this.context;
    this.#reply([220, `${hostName} ESMTP`]);
    try {
      for (;;) {
        const line = await this.#socket.readLine(limits.commandBytes);
        if (line === null) return;
        if (line === "too_long") return this.#drop("4.5.2 Line too long, closing connection");
        for (const reply of await this.#execute(line)) this.#reply(reply);
      }
    } catch (error) {
      log.error("an SMTP session failed", { error, client: this.connection.client });
      this.destroy();
    }
  }

  /** Since when it has been waiting for the content of a mail; null while that comes, or when it is ending. */
  waitingSinceMs(): number | null {
    return this.#mail !== null || this.#isFarewell ? null : this.#deadlines.waitingSinceMs;
  }

  /** Ends the connection in favour of another one. */
  giveWay(): void {
    this.#drop("4.7.0 Too many connections, try again later");
    this.destroy();
  }

  /** Ends the connection with a 421: immediately, or after the mail in progress. */
  close(): void {
    this.#isClosing = true;
    if (this.#mail === null) this.#reply(REPLIES.closing);
  }

  /** Ends the connection immediately, in every state. A mail that is being stored is still stored. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** Carries out a command; returns the replies that are still to be sent. */
  async #execute(line: string): Promise<readonly ReceiverReply[]> {
    if (HTTP_REQUEST.test(line)) return [[421, "4.7.0 This is not an HTTP server"]];
    const { verb, argument } = splitCommand(line);
    switch (verb) {
      case "EHLO":
      case "HELO":
        return [this.#greet(verb, argument)];
      case "STARTTLS":
        return await this.#startTls(argument);
      case "MAIL":
        return [this.#beginMail(argument)];
      case "RCPT":
        return [await this.#addRecipient(argument)];
      case "DATA":
        return await this.#receive();
      case "RSET":
        this.#envelope.reset();
        return [REPLIES.ok];
      default:
        return FIXED_REPLIES.get(verb) ?? [REPLIES.unrecognized];
    }
  }

  #greet(verb: "EHLO" | "HELO", name: string): ReceiverReply {
    const { hostName, limits } = this.context;
    if (!this.#envelope.greet(name)) return [501, `5.5.4 Syntax: ${verb} hostname`];
    if (verb === "HELO") return [250, hostName];
    const starttls = this.#socket.isTls ? [] : ["STARTTLS"];
    return [250, [hostName, ...EXTENSIONS, ...starttls, `SIZE ${limits.mailBytes}`].join("\n")];
  }

  /** RFC 3207 §4.2: what the client said before the handshake is discarded. */
  async #startTls(argument: string): Promise<readonly ReceiverReply[]> {
    if (argument !== "") return [[501, "5.5.4 Syntax: STARTTLS"]];
    if (this.#socket.isTls) return [[503, "5.5.1 TLS already active"]];
    this.#noteReply(220);
    await this.#socket.startTls("220 2.0.0 Ready to start TLS\r\n", this.context.secureContext);
    this.#envelope.helo = null;
    this.#envelope.reset();
    return [];
  }

  #beginMail(argument: string): ReceiverReply {
    const { limits, rules } = this.context;
    const mail = this.#envelope.readMail(argument, limits);
    if ("refusal" in mail) return mail.refusal;
    if (this.#mails >= limits.mailsPerConnection) return [421, "4.7.0 Too many messages in one connection"];
    if (rules.isFull?.() === true) return REPLIES.noStorage;
    if (!this.connection.slot.canReserve(mail.size)) return REPLIES.noMemory;
    this.#deadlines.beginEnvelope();
    this.#envelope.mailFrom = mail.address;
    return [250, "2.1.0 Ok"];
  }

  async #addRecipient(argument: string): Promise<ReceiverReply> {
    const { limits, counts } = this.context;
    const recipient = this.#envelope.readRecipient(argument, limits);
    if ("refusal" in recipient) return recipient.refusal;
    const verdict = await this.#judge(recipient.address);
    if (verdict === "later") return REPLIES.later;
    if (verdict === "full") return REPLIES.noStorage;
    if (verdict === "known") {
      this.#envelope.add(recipient.address);
      return [250, "2.1.5 Ok"];
    }
    counts.unknownRecipients++;
    this.#unknownRecipients++;
    if (this.#unknownRecipients < limits.unknownRecipients) return [550, "5.1.1 User unknown"];
    counts.dropped++;
    return [421, "4.7.0 Too many unknown recipients"];
  }

  async #judge(address: string): Promise<RecipientVerdict> {
    const { rules, log } = this.context;
    this.#deadlines.isOurTurn = true;
    try {
      return await rules.judgeRecipient(address);
    } catch (error) {
      log.error("a recipient of report mail could not be looked up", { error, client: this.connection.client });
      return "later";
    } finally {
      this.#deadlines.isOurTurn = false;
    }
  }

  /** DATA: receives the content, has the mail accepted, and replies. A mail that does not arrive whole is dropped. */
  async #receive(): Promise<readonly ReceiverReply[]> {
    if (this.#envelope.recipients.length === 0) return [[503, "5.5.1 Need RCPT command"]];
    const { limits } = this.context;
    const mail = new MailBuffer(this.connection.slot, limits.mailBytes);
    this.#mail = mail;
    this.#mails++;
    this.#deadlines.beginContent();
    this.#reply([354, "End data with <CR><LF>.<CR><LF>"]);
    if (!(await this.#socket.readContent((piece) => this.#addContent(mail, piece)))) {
      // The client may take its time to close after our 421.
      mail.abandon();
      return [];
    }
    this.#deadlines.endContent();
    const reply = await this.#conclude(mail);
    this.#mail = null;
    this.#envelope.reset();
    this.#deadlines.awaitMail();
    this.#repliesSinceMail = 0;
    return this.#isClosing ? [reply, REPLIES.closing] : [reply];
  }

  #addContent(mail: MailBuffer, piece: Uint8Array) {
    const { limits, counts } = this.context;
    if (this.#isClosed) return;
    this.#deadlines.noteActivity();
    mail.add(piece);
    if (mail.bytesSeen <= limits.mailBytesRead) return;
    counts.dropped++;
    counts.refused++;
    this.destroy();
  }

  async #conclude(mail: MailBuffer): Promise<ReceiverReply> {
    const { counts, limits } = this.context;
    const bytes = mail.finish();
    if (!bytes.ok) {
      const reply = contentRefusal(bytes.error, limits.mailBytes);
      if (bytes.error !== "abandoned") counts[reply[0] < 500 ? "later" : "refused"]++;
      return reply;
    }
    this.#deadlines.isOurTurn = true;
    const outcome = await this.#accept(bytes.value);
    this.#deadlines.isOurTurn = false;
    mail.release();
    counts[outcome === "full" ? "later" : outcome]++;
    if (outcome === "accepted") return [250, "2.0.0 Message accepted"];
    if (outcome === "full") return REPLIES.noStorage;
    return outcome === "later" ? REPLIES.later : REPLIES.refused;
  }

  async #accept(bytes: Uint8Array): Promise<AcceptOutcome> {
    const { rules, log } = this.context;
    const { client } = this.connection;
    const { recipients, mailFrom, helo } = this.#envelope;
    const { isTls: tls } = this.#socket;
    const mail: ReceivedMail = { recipients, mailFrom: mailFrom ?? "", helo, client, bytes, tls };
    try {
      return await rules.acceptMail(mail);
    } catch (error) {
      log.error("a report mail could not be stored", { error, client, bytes: bytes.length });
      return "later";
    }
  }

  /** Sends a reply. After 221 and 421 the connection ends. */
  #reply(reply: ReceiverReply) {
    const [code] = reply;
    if (this.#isClosed || this.#isFarewell) return;
    if (code !== 221 && code !== 421) {
      this.#socket.write(formatReply(reply));
      this.#noteReply(code);
      return;
    }
    this.#isFarewell = true;
    this.#deadlines.beginFarewell();
    this.#socket.finish(formatReply(reply));
  }

  /** Counts a reply against the limits of a connection. */
  #noteReply(code: number) {
    const { limits } = this.context;
    this.#deadlines.noteActivity();
    this.#repliesSinceMail++;
    if (code >= 500) this.#refusedCommands++;
    if (this.#repliesSinceMail > limits.repliesPerMail) this.#drop("4.7.0 Too many commands without a message");
    else if (this.#refusedCommands >= limits.refusedCommands) this.#drop("4.7.0 Too many errors");
  }

  #endOverdue(passed: ReceiverDeadline) {
    if (passed === "farewellMs") this.destroy();
    else this.#drop(DEADLINE_TEXTS[passed]);
  }

  #drop(text: string) {
    this.context.counts.dropped++;
    this.#reply([421, text]);
  }

  #closed() {
    this.#isClosed = true;
    this.#mail?.abandon();
    this.#deadlines.stop();
    this.connection.slot.release();
    this.connection.onClosed();
  }
}
