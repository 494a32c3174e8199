// One field of a schema form, rendered by its schema; knows no plugin.
import { Input, Select, Stack } from "@mantine/core";
import { useState } from "react";
import { ItemsField, MapField, PairsField, startOf } from "./collection-fields.tsx";
import { type FieldProps, type FieldInputProps, useFormFacts, useTexts } from "./field-frame.tsx";
import { ObjectField } from "./object-fields.tsx";
import { ChoiceField, ChoicesField } from "./choice-fields.tsx";
import { NumberField } from "./number-field.tsx";
import {
  FlagField,
  JsonField,
  LongField,
  TextField,
  WordOrWordsField,
  WordsField,
} from "./plain-fields.tsx";
import { problemsOf } from "./problems.ts";
import {
  ConsumerField,
  ReferenceField,
  ReferencesField,
  SecretField,
  ServiceField,
} from "./reference-fields.tsx";
import { type JsonSchema, optionsOf, type Shape, shapeOf } from "./shape.ts";

type Drawn = Exclude<Shape, "object" | "picked">;

const fields: Readonly<Record<Drawn, React.ComponentType<FieldInputProps>>> = {
  text: TextField,
  long: LongField,
  secret: SecretField,
  service: ServiceField,
  consumer: ConsumerField,
  reference: ReferenceField,
  references: ReferencesField,
  number: NumberField,
  flag: FlagField,
  choice: ChoiceField,
  words: WordsField,
  choices: ChoicesField,
  word_or_words: WordOrWordsField,
  items: ItemsField,
  pairs: PairsField,
  map: MapField,
  union: UnionField,
  json: JsonField,
};

export function Field({ isBare = false, ...props }: FieldProps) {
  const { shape } = shapeOf(props.info.schema);
  const Own = useFormFacts().overrides[props.info.path];
  if (Own !== undefined)
    return (
      <div data-field={props.info.path}>
        <Own {...props} />
      </div>
    );
  if (shape === "object" || shape === "picked") return <ObjectField {...props} isBare={isBare} />;
  const Drawn = fields[shape];
  return (
    <div data-field={props.info.path}>
      <Drawn {...props} />
    </div>
  );
}

/** A union: a value with a selection of its type. */
function UnionField({ info, value, onChange }: FieldInputProps) {
  const texts = useTexts(info);
  const { isNullable } = shapeOf(info.schema);
  const options = optionsOf(info.schema);
  const shown = value === undefined ? info.schema.default : value;
  const [asked, setAsked] = useState<number | null>(null);
  const fitting = options.findIndex((option) => problemsOf(option, shown).length === 0);
  const chosen = asked ?? (fitting === -1 ? (isNullable ? null : 0) : fitting);
  const option = chosen === null ? undefined : options[chosen];
  const choose = (next: string | null) => {
    setAsked(next === null ? null : Number(next));
    const schema = next === null ? undefined : options[Number(next)];
    onChange(schema === undefined ? null : fixedOf(schema));
  };
  return (
    <Input.Wrapper {...texts} labelElement="div">
      <Stack gap={6} mt={4}>
        <Select
          aria-label={`${info.label}: type`}
          disabled={texts.disabled}
          data={options.map((each, index) => ({ value: String(index), label: titleOf(each) }))}
          value={chosen === null ? null : String(chosen)}
          onChange={choose}
          clearable={isNullable}
          allowDeselect={false}
          placeholder="Anything"
        />
        {option !== undefined && option.enum?.length !== 1 && (
          <Field
            info={{ ...info, schema: option, label: titleOf(option), isNeeded: false }}
            value={shown}
            onChange={(next) => onChange(next ?? fixedOf(option))}
            isBare
          />
        )}
      </Stack>
    </Input.Wrapper>
  );
}

/** The initial value of a selected type. */
function fixedOf(schema: JsonSchema): unknown {
  const [only] = schema.enum ?? [];
  if (only !== undefined) return only;
  if (schema.type === "array") return [];
  return schema.type === "number" || schema.type === "integer" ? 0 : startOf(schema);
}

/** The label of a type. */
function titleOf(schema: JsonSchema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.enum?.length === 1) return String(schema.enum[0]);
  switch (schema.type) {
    case "array":
      return "A list";
    case "string":
      return "A text";
    case "number":
    case "integer":
      return "A number";
    case "boolean":
      return "Yes or no";
    default:
      return "An object";
  }
}
