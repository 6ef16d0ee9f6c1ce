import { createSocket } from "node:dgram";
import { once } from "node:events";

/** An answer to one name and type: addresses, or places with a port. */
export interface DnsRecords {
  readonly a?: readonly string[];
  readonly srv?: readonly { readonly host: string; readonly port: number }[];
}

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_SRV = 33;
const NAME_ERROR = 3;
const SERVER_FAILURE = 2;

/** A DNS server on a local UDP port that answers every question with the records it was given. */
export class DnsServer {
  records: DnsRecords = {};
  isBroken = false;
  readonly #socket = createSocket("udp4");

  /** Starts to answer and returns the address that a resolver takes. */
  async listen(): Promise<string> {
    this.#socket.on("message", (question, { port, address }) => {
      this.#socket.send(this.#answer(question), port, address);
    });
    this.#socket.bind(0, "127.0.0.1");
    await once(this.#socket, "listening");
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }

  #answer(message: Buffer): Buffer {
    const questionEnd = message.indexOf(0, HEADER_BYTES) + 5;
    const type = message.readUInt16BE(questionEnd - 4);
    const answers = this.isBroken ? [] : this.#recordsOf(type);
    const header = Buffer.alloc(HEADER_BYTES);
    message.copy(header, 0, 0, 2);
    const isUnknown = this.records.a === undefined && this.records.srv === undefined;
    const code = this.isBroken ? SERVER_FAILURE : isUnknown ? NAME_ERROR : 0;
    header.writeUInt16BE(0x8580 | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    return Buffer.concat([header, message.subarray(HEADER_BYTES, questionEnd), ...answers]);
  }

  #recordsOf(type: number): Buffer[] {
    const { a = [], srv = [] } = this.records;
    if (type === TYPE_A) return a.map((address) => record(type, Buffer.from(address.split(".").map(Number))));
    if (type !== TYPE_SRV) return [];
    return srv.map(({ host, port }) => {
      const fixed = Buffer.alloc(6);
      fixed.writeUInt16BE(port, 4);
      return record(type, Buffer.concat([fixed, encodedName(host)]));
    });
  }
}

/** One record about the name in the question, good for no time at all. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function encodedName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.of(0)]);
}
