// Reads metrics as strictly as the two formats are defined, and throws with the line that breaks them.

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: MetricSample[];
}

export interface ReadMetrics {
  readonly families: ReadonlyMap<string, MetricFamily>;
  /** The sum of all samples of this name whose labels include these. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;

export function readMetrics(text: string, format: "prometheus" | "openmetrics"): ReadMetrics {
  const isOpen = format === "openmetrics";
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const lines = text.slice(0, -1).split("\n");
  if (isOpen && lines.pop() !== "# EOF") throw new Error("# EOF is missing");
  const families = new Map<string, MetricFamily>();
  const seen = new Set<string>();
  let help: { name: string; text: string } | null = null;
  let family: MetricFamily | null = null;
  for (const line of lines) {
    const fail = (why: string) => new Error(`${why}: ${line}`);
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === "HELP") {
      if (!NAME.test(name)) throw fail("not a name");
      if (families.has(name)) throw fail("the family is there twice");
      help = { name, text: rest };
    } else if (keyword === "TYPE") {
      if (help?.name !== name) throw fail("no HELP directly before it");
      if (!["counter", "gauge", "histogram"].includes(rest)) throw fail("not a type");
      family = { name, type: rest, help: help.text, samples: [] };
      families.set(name, family);
    } else if (line.startsWith("#") || line === "") throw fail("a line that is neither");
    else {
      if (family === null) throw fail("no family");
      const sample = readSample(line, fail);
      checkName(family, sample, { isOpen, fail });
      const identity = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(identity)) throw fail("the series is there twice");
      seen.add(identity);
      family.samples.push(sample);
    }
  }
  for (const one of families.values()) checkFamily(one);
  return {
    families,
    sum: (name, labels = {}) =>
      [...families.values()]
        .flatMap(({ samples }) => samples)
        .filter(
          (sample) =>
            sample.name === name &&
            Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
        )
        .reduce((sum, { value }) => sum + value, 0),
  };
}

function readSample(line: string, fail: (why: string) => Error): MetricSample {
  const [, name = "", labelText, valueText = ""] = LINE.exec(line) ?? [];
  if (name === "") throw fail("not a sample");
  const labels: Record<string, string> = {};
  let rest = labelText ?? "";
  if (labelText === "") throw fail("empty braces");
  while (rest !== "") {
    const [whole = "", label = "", escaped = ""] = LABEL.exec(rest) ?? [];
    if (whole === "") throw fail("not a label");
    if (label in labels) throw fail("a label twice");
    labels[label] = escaped.replace(/\\(.)/g, (_, character) =>
      character === "n" ? "\n" : character,
    );
    rest = rest.slice(whole.length);
  }
  if (!/^(?:[+-]Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.test(valueText)) throw fail("not a value");
  return { name, labels, value: Number(valueText.replace("Inf", "Infinity")) };
}

function checkName(
  { name, type }: MetricFamily,
  sample: MetricSample,
  { isOpen, fail }: { readonly isOpen: boolean; readonly fail: (why: string) => Error },
): void {
  if (!name.startsWith("sluice_")) throw fail("a name without the prefix sluice_");
  if (isOpen && type === "counter" && name.endsWith("_total")) throw fail("a family with _total");
  const allowed =
    type === "histogram"
      ? [`${name}_bucket`, `${name}_sum`, `${name}_count`]
      : [type === "counter" && isOpen ? `${name}_total` : name];
  if (!allowed.includes(sample.name)) throw fail("a sample of another family");
  if (type === "counter" && !sample.name.endsWith("_total")) throw fail("a counter without _total");
  if (type !== "counter" && sample.name.endsWith("_total")) throw fail("_total on no counter");
  if (type !== "gauge" && !(sample.value >= 0)) throw fail("a count below 0");
  if (sample.name.endsWith("_bucket") !== "le" in sample.labels)
    throw fail("le at the wrong place");
  if (isOpen && /^\d+$/.test(sample.labels["le"] ?? "")) throw fail("a bound without a point");
}

/** Buckets ascend in bound and count, the last one is infinity and equals the count. */
function checkFamily({ name, type, samples }: MetricFamily): void {
  if (samples.length === 0) throw new Error(`${name} has no samples`);
  if (type !== "histogram") return;
  const withoutBound = ({ labels: { le: _, ...labels } }: MetricSample) => JSON.stringify(labels);
  for (const [labels, group] of Map.groupBy(samples, withoutBound)) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map((sample) => Number(sample.labels["le"]?.replace("Inf", "Infinity")));
    const values = buckets.map(({ value }) => value);
    const ascends = (list: number[], isStrict: boolean) =>
      list.every(
        (value, at) => at === 0 || value > list[at - 1]! || (!isStrict && value === list[at - 1]),
      );
    const count = group.find((sample) => sample.name === `${name}_count`)?.value;
    const sum = group.find((sample) => sample.name === `${name}_sum`);
    if (!ascends(bounds, true) || !ascends(values, false))
      throw new Error(`${name}${labels} does not ascend`);
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || values.at(-1) !== count || sum === undefined)
      throw new Error(`${name}${labels} is not complete`);
  }
}
