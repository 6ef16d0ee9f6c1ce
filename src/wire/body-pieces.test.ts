import fc from "fast-check";
import { expect, test } from "vitest";
import { BodyPieces } from "./body-pieces.ts";

const pieceOf = (bytes: number, value: number): Uint8Array => new Uint8Array(bytes).fill(value);

test("a body is what its pieces are, however large each of them is", () => {
  const sizes = fc.array(fc.oneof(fc.nat(10), fc.nat(5000), fc.constant(70_000)), { maxLength: 60 });
  fc.assert(
    fc.property(sizes, (lengths) => {
      const pieces = lengths.map((length, i) => pieceOf(length, i));
      const body = new BodyPieces();
      for (const piece of pieces) body.add(piece);
      expect(body.length).toBe(lengths.reduce((sum, length) => sum + length, 0));
      expect(Buffer.compare(body.join(), Buffer.concat(pieces))).toBe(0);
    }),
  );
});

test("a body in very many pieces is kept in few, and one in a single piece as it came", () => {
  const body = new BodyPieces();
  for (let i = 0; i < 200_000; i++) body.add(pieceOf(1, i));
  expect(body.count).toBeLessThan(6);
  const whole = pieceOf(100, 1);
  const single = new BodyPieces();
  single.add(whole);
  expect(single.join()).toBe(whole);
});
