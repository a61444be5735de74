// In one container: a name server that knows some services, and a web server in their place.
// Arguments: the kind of the addresses (4 or 6), then the names.
import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

const [, , family, ...names] = process.argv;
const [own] = Object.values(networkInterfaces())
  .flat()
  .filter((each) => !each.internal && each.family === `IPv${family}` && !each.address.startsWith("fe80"));
const TYPE = family === "6" ? 28 : 1;
const address = isIPv6(own.address) ? bytesOfIPv6(own.address) : Buffer.from(own.address.split(".").map(Number));

createServer((_, res) => res.end("here")).listen(8080);

/** A question is answered with its own bytes, behind which the address comes. Source: RFC 1035, section 4. */
const server = createSocket("udp6");
server.on("message", (query, { address: client, port }) => {
  const end = query.indexOf(0, 12) + 5;
  const labels = [];
  for (let at = 12; query[at] !== 0; at += query[at] + 1)
    labels.push(query.toString("latin1", at + 1, at + 1 + query[at]));
  const isKnown = names.includes(labels.join("."));
  const isAsked = isKnown && query.readUInt16BE(end - 4) === TYPE;
  const head = Buffer.from([query[0], query[1], 0x81, isKnown ? 0x80 : 0x83, 0, 1, 0, Number(isAsked), 0, 0, 0, 0]);
  const record = Buffer.from([0xc0, 12, 0, TYPE, 0, 1, 0, 0, 0, 1, 0, address.length]);
  server.send(Buffer.concat([head, query.subarray(12, end), ...(isAsked ? [record, address] : [])]), port, client);
});
server.bind(53, () => console.log(`answers at ${own.address}`));

function bytesOfIPv6(text) {
  const [head, tail] = text.split("::").map((part) => part.split(":").filter(Boolean));
  const groups = [...head, ...Array(8 - head.length - (tail?.length ?? 0)).fill("0"), ...(tail ?? [])];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
}
