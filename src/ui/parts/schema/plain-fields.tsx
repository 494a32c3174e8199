// Fields of a schema form that hold one value: texts, numbers, switches, choices, lists of words, JSON; know no plugin.
import {
  Input,
  MultiSelect,
  NumberInput,
  SegmentedControl,
  Select,
  Switch,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { inWords } from "../fields.tsx";
import { placeholderOf, type SpotProps, useFormFacts, useTexts } from "./field-frame.tsx";
import { type JsonSchema, meaningsOf, shapeOf, type Unit, unitOf } from "./shape.ts";

/** What an emptied field stands for. */
const emptyOf = (schema: JsonSchema): null | undefined =>
  shapeOf(schema).isNullable ? null : undefined;

const asText = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";

export function TextField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot);
  return (
    <TextInput
      {...texts}
      placeholder={placeholderOf(spot)}
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(spot.schema) : next)
      }
    />
  );
}

export function LongField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot);
  return (
    <Textarea
      {...texts}
      autosize
      minRows={spot.isNeeded ? 10 : 3}
      maxRows={30}
      spellCheck={false}
      placeholder={placeholderOf(spot)}
      styles={MONO}
      value={asText(value)}
      onChange={({ currentTarget: { value: next } }) =>
        onChange(next === "" ? emptyOf(spot.schema) : next)
      }
    />
  );
}

const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } };

export function NumberField({ spot, value, onChange }: SpotProps) {
  const { description, ...texts } = useTexts(spot);
  const { schema } = shapeOf(spot.schema);
  const unit = unitOf(spot.name, schema);
  const initial = schema.default;
  const shown = typeof value === "number" ? value : initial;
  const spoken = unit !== null && typeof shown === "number" ? spell(shown, unit) : "";
  return (
    <NumberInput
      {...texts}
      description={
        <>
          {description}
          {spoken !== "" && ` (${spoken})`}
        </>
      }
      maw={360}
      // A wrong number stays and is told, instead of becoming another one.
      clampBehavior="none"
      allowDecimal={schema.type === "number"}
      placeholder={withUnit(placeholderOf({ ...spot, schema }), unit)}
      hideControls={unit !== null}
      suffix={unit === null ? "" : ` ${unit}`}
      value={typeof value === "number" ? value : ""}
      onChange={(next) => onChange(next === "" ? emptyOf(spot.schema) : Number(next))}
    />
  );
}

const withUnit = (placeholder: string, unit: Unit | null): string =>
  unit === null || placeholder === "" ? placeholder : `${placeholder} ${unit}`;

function spell(value: number, unit: Unit): string {
  if (unit !== "B") return inWords(value, unit);
  const step = [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ].find(([size]) => value >= Number(size));
  return step === undefined ? "" : `${Math.round((value / Number(step[0])) * 10) / 10} ${step[1]}`;
}

export function FlagField({ spot, value, onChange }: SpotProps) {
  const { withAsterisk: _, ...texts } = useTexts(spot);
  const isOn = typeof value === "boolean" ? value : spot.schema.default === true;
  return (
    <Switch
      {...texts}
      checked={isOn}
      onChange={({ currentTarget: { checked } }) => onChange(checked)}
    />
  );
}

/** More than this many words, or longer ones, do not fit beside each other on a phone. */
const MAX_SEGMENTS = 3;

export function ChoiceField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot);
  const { schema, isNullable } = shapeOf(spot.schema);
  const words = schema.enum ?? [];
  const chosen = value ?? schema.default ?? null;
  const meanings = meaningsOf(schema);
  const isShort = words.length <= MAX_SEGMENTS && words.join("").length < 30;
  const take = (next: string | null) =>
    onChange(next === null ? emptyOf(spot.schema) : words.find((word) => String(word) === next));
  const data = words.map((word) => ({
    value: String(word),
    label: typeof word === "number" ? String(word) : toWords(word),
  }));
  const told = chosen === null ? undefined : meanings?.get(String(chosen));
  const description = told === undefined ? texts.description : told;
  if (isShort && !isNullable && chosen !== null)
    return (
      <Input.Wrapper {...texts} description={description} labelElement="div">
        <SegmentedControl
          mt={4}
          style={{ display: "flex", width: "fit-content", maxWidth: "100%" }}
          aria-label={spot.label}
          data={data}
          value={String(chosen)}
          onChange={take}
          disabled={texts.disabled}
        />
      </Input.Wrapper>
    );
  return (
    <Select
      {...texts}
      description={description}
      data={data}
      value={chosen === null ? null : String(chosen)}
      onChange={take}
      clearable={isNullable}
      allowDeselect={false}
      placeholder="Choose"
      maxDropdownHeight={320}
      renderOption={({ option }) => (
        <div>
          <Text size="sm">{option.label}</Text>
          {meanings?.get(option.value) !== undefined && (
            <Text size="xs" c="dimmed">
              {meanings.get(option.value)}
            </Text>
          )}
        </div>
      )}
    />
  );
}

/** Words that are part of a language of others, such as methods and algorithms, stay as they are. */
const toWords = (word: string): string =>
  /^[a-z]+(?:_[a-z]+)+$/.test(word) ? word.replaceAll("_", " ") : word;

/** Texts in which a comma may be part of what is meant. */
const KEEPS_COMMAS = new Set(["regex", "text_or_regex", "template", "header_value"]);

export function WordsField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot, true);
  const { schema, isNullable } = shapeOf(spot.schema);
  const items = schema.items ?? {};
  const isNumber = items.type === "integer";
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const words = Array.isArray(value) ? value : [];
  const isDefault = value === undefined && initial.length > 0;
  const take = (next: readonly string[]) => {
    if (next.length === 0 && schema.default === undefined) return onChange(emptyOf(spot.schema));
    if (next.length === 0 && isNullable) return onChange(null);
    onChange(isNumber ? next.map(toNumber) : [...next]);
  };
  return (
    <TagsInput
      {...texts}
      value={(isDefault ? initial : words).map(String)}
      onChange={take}
      splitChars={KEEPS_COMMAS.has(items["x-kind"] ?? "") ? [] : [","]}
      acceptValueOnBlur
      clearable
      placeholder={words.length === 0 && !isDefault ? placeholderOf(spot) : ""}
    />
  );
}

const toNumber = (text: string): number | string => (/^-?\d+$/.test(text) ? Number(text) : text);

export function ChoicesField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot, true);
  const { schema, isNullable } = shapeOf(spot.schema);
  const words = shapeOf(schema.items ?? {}).schema.enum ?? [];
  const initial = Array.isArray(schema.default) ? (schema.default as unknown[]) : [];
  const chosen = (Array.isArray(value) ? value : value === undefined ? initial : []).map(String);
  const take = (next: readonly string[]) => {
    if (next.length === 0 && (isNullable || schema.default === undefined))
      return onChange(emptyOf(spot.schema));
    onChange(next.map((text) => words.find((word) => String(word) === text)));
  };
  return (
    <MultiSelect
      {...texts}
      data={[...new Set([...words.map(String), ...chosen])]}
      value={chosen}
      onChange={take}
      clearable
      searchable={words.length > 6}
      placeholder={chosen.length === 0 ? "Choose" : ""}
    />
  );
}

/** One text, or several that are written as a list. */
export function WordOrWordsField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot, true);
  const initial = spot.schema.default;
  const shown = value ?? initial ?? [];
  const words = (Array.isArray(shown) ? shown : [shown]).map(String);
  const take = (next: readonly string[]) =>
    onChange(next.length === 0 ? emptyOf(spot.schema) : next.length === 1 ? next[0] : [...next]);
  return <TagsInput {...texts} value={words} onChange={take} acceptValueOnBlur clearable />;
}

/** Anything, as JSON. */
export function JsonField({ spot, value, onChange }: SpotProps) {
  const texts = useTexts(spot, true);
  const { isReadOnly } = useFormFacts();
  const written = value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
  const [draft, setDraft] = useState<{ readonly of: string; readonly text: string } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // Something else has changed the value meanwhile.
  const text = draft !== null && draft.of === written ? draft.text : written;
  const take = (next: string) => {
    const parsed = next.trim() === "" ? { value: emptyOf(spot.schema) } : parse(next);
    setProblem(parsed === null ? "this is no JSON yet" : null);
    if (parsed === null) return setDraft({ of: written, text: next });
    const { value: read } = parsed;
    const after = read === undefined || read === null ? "" : JSON.stringify(read, null, 2);
    setDraft({ of: after, text: next });
    onChange(read);
  };
  return (
    <Textarea
      {...texts}
      error={draft !== null && draft.of === written && problem !== null ? problem : texts.error}
      autosize
      minRows={2}
      maxRows={24}
      spellCheck={false}
      readOnly={isReadOnly}
      placeholder={spot.example === undefined ? "{ }" : JSON.stringify(spot.example).slice(0, 120)}
      styles={MONO}
      value={text}
      onChange={({ currentTarget: { value: next } }) => take(next)}
    />
  );
}

function parse(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return null;
  }
}
