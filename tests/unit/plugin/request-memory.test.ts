// What plugins keep for a request is there again, as a Map would have it, however many keep something.
import { expect, test } from "bun:test";
import { RequestMemory } from "../../../src/dataplane/plugin/request-memory.ts";
import { Random } from "../../support/random.ts";

test("it answers as a Map does, and so does a copy, which goes its own way", () => {
  const places = [{}, {}, {}, {}];
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed);
    const [memories, models] = [[new RequestMemory()], [new Map<object, unknown>()]];
    for (let step = 0; step < 60; step++) {
      const at = random.between(0, memories.length);
      const [memory, model] = [memories[at]!, models[at]!];
      const place = random.pick(places);
      switch (random.between(0, 8)) {
        case 0:
          memory.delete(place);
          model.delete(place);
          break;
        case 1:
          memories.push(memory.copy());
          models.push(new Map(model));
          break;
        default:
          memory.set(place, step);
          model.set(place, step);
      }
      memories.forEach((each, index) => {
        const [kept, expected] = [each, models[index]!];
        expect(places.map((one) => kept.get(one))).toEqual(places.map((one) => expected.get(one)));
      });
    }
  }
});
