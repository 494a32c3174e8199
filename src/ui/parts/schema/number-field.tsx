// The schema form field of a number, in the unit that reads best; knows no plugin.
import { NativeSelect, NumberInput } from "@mantine/core";
import { useState } from "react";
import { emptyOf, type FieldInputProps, placeholderOf, useTexts } from "./field-frame.tsx";
import { shapeOf, type Unit, unitOf } from "./shape.ts";

interface Scale {
  readonly label: string;
  /** How many of the schema's unit it is. */
  readonly factor: number;
}

const scale = (label: string, factor: number): Scale => ({ label, factor });

const SCALES: Readonly<Record<Unit, readonly Scale[]>> = {
  ms: [
    scale("ms", 1),
    scale("s", 1000),
    scale("min", 60_000),
    scale("h", 3_600_000),
    scale("days", 86_400_000),
  ],
  s: [scale("s", 1), scale("min", 60), scale("h", 3600), scale("days", 86_400)],
  B: [scale("bytes", 1), scale("KiB", 2 ** 10), scale("MiB", 2 ** 20), scale("GiB", 2 ** 30)],
  "%": [scale("%", 1)],
};

/** The largest unit in which the value is a whole number. */
export function scaleOf(unit: Unit, value: unknown): Scale {
  const [first = scale("", 1), ...others] = SCALES[unit];
  if (typeof value !== "number" || value === 0) return first;
  return others.findLast(({ factor }) => value % factor === 0) ?? first;
}

export function NumberField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const { schema } = shapeOf(info.schema);
  const unit = unitOf(info.name, schema);
  const [chosen, setChosen] = useState<Scale | null>(null);
  const initial = schema.default;
  const shown = chosen ?? (unit === null ? scale("", 1) : scaleOf(unit, value ?? initial));
  const { factor } = shown;
  const placeholder =
    typeof initial === "number" ? String(initial / factor) : placeholderOf({ ...info, schema });
  const { maximum = Infinity } = schema;
  const units = (unit === null ? [] : SCALES[unit]).filter((each) => each.factor <= maximum);
  const take = (next: string | number) => {
    // The unit must not change while a number is typed.
    setChosen(shown);
    if (next === "") return onChange(emptyOf(info.schema));
    const scaled = Number(next) * factor;
    onChange(factor === 1 ? scaled : Math.round(scaled));
  };
  return (
    <NumberInput
      {...texts}
      // An invalid number stays with an error, instead of becoming another number.
      clampBehavior="none"
      allowDecimal={schema.type === "number" || factor > 1}
      thousandSeparator={schema.form?.input === "plain-number" ? "" : " "}
      placeholder={placeholder}
      hideControls={unit !== null}
      suffix={unit === "%" ? " %" : ""}
      value={typeof value === "number" ? value / factor : ""}
      onChange={take}
      {...(units.length > 1
        ? {
            rightSectionWidth: 84,
            rightSection: (
              <NativeSelect
                aria-label={`${info.label}: unit`}
                variant="unstyled"
                size="xs"
                w={72}
                rightSectionWidth={22}
                // The padding of the number's own input is inherited.
                styles={{ input: { paddingInlineStart: 0, paddingInlineEnd: 22 } }}
                disabled={texts.disabled}
                data={units.map(({ label }) => label)}
                value={shown.label}
                onChange={({ currentTarget }) =>
                  setChosen(units.find(({ label }) => label === currentTarget.value) ?? shown)
                }
              />
            ),
          }
        : {})}
    />
  );
}
