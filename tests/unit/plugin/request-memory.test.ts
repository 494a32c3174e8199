// The state that plugins store per request behaves as a Map, however many plugins store something.
import { expect, test } from "bun:test";
import { RequestMemory } from "../../../src/dataplane/plugin/request-memory.ts";
import { Random } from "../../support/random.ts";

test("it behaves as a Map, and so does an independent copy", () => {
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
