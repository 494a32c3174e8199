// The fields of an object on a page: sections that fold, and columns; knows no resource.
import { Grid, Input, Stack, Switch } from "@mantine/core";
import type { ReactNode } from "react";
import type { FormGroup } from "../../../model/fields.ts";
import { type Document, isDocument } from "../../api/merge-patch.ts";
import { FoldedSection, SubHead } from "../folded-section.tsx";
import { Section } from "../page-layout.tsx";
import {
  type FieldInfo,
  type FieldInputProps,
  help,
  InnerField,
  memberInfo,
  useErrorAt,
  useFormFacts,
} from "./field-frame.tsx";
import { type JsonSchema, shapeOf } from "./shape.ts";
import { isShown, summaryOf, withDefaults, withMember } from "./values.ts";

interface SectionsProps {
  readonly schema: JsonSchema;
  /** With every default. */
  readonly value: Document;
  /** As entered. */
  readonly entered: Document;
  readonly onChange: (name: string, value: unknown) => void;
  /** More content of a section, by its id. */
  readonly after?: Readonly<Record<string, ReactNode>>;
}

/** All fields of a page. */
export function PageSections({ schema, value, entered, onChange, after = {} }: SectionsProps) {
  const { errors } = useFormFacts();
  const info = { path: "", name: "", label: "", schema, isNeeded: true, example: undefined };
  return sectionsOf(schema, value).map(({ group, names }) => {
    const content = (
      <Stack>
        <Members info={info} names={names} value={entered} onMember={onChange} />
        {after[group.id]}
      </Stack>
    );
    const { title, text } = group;
    if (title === "") return <div key={group.id}>{content}</div>;
    if (group.folded !== true)
      return (
        <Section key={group.id} title={title} text={text}>
          {content}
        </Section>
      );
    const fields = Object.fromEntries(names.map((name) => [name, schema.properties?.[name] ?? {}]));
    return (
      <FoldedSection
        key={group.id}
        title={title}
        text={text}
        summary={summaryOf(fields, value) || group.summary}
        isOpenAtFirst={summaryOf(fields, value) !== ""}
        fields={names}
        errors={errors}
      >
        {content}
      </FoldedSection>
    );
  });
}

interface FieldSection {
  readonly group: FormGroup;
  readonly names: readonly string[];
}

/** The sections with a field that is shown. */
function sectionsOf({ properties = {}, form }: JsonSchema, value: Document): FieldSection[] {
  const groups = form?.groups ?? [{ id: "", title: "" }];
  const orderOf = (name: string) => properties[name]?.form?.order ?? 0;
  const groupOf = (name: string) =>
    groups.find(({ id }) => id === properties[name]?.form?.group) ?? groups[0];
  const shown = Object.keys(properties)
    .filter((name) => isShown(properties[name] ?? {}, value))
    .toSorted((one, other) => orderOf(one) - orderOf(other));
  return groups
    .map((group) => ({ group, names: shown.filter((name) => groupOf(name) === group) }))
    .filter(({ names }) => names.length > 0);
}

/** An object inside of a section. */
export function PageObject({ info, value, onChange }: FieldInputProps) {
  const { schema, isNullable } = shapeOf(info.schema);
  const error = useErrorAt(info.path);
  const { isReadOnly } = useFormFacts();
  const isThere = !isNullable || isDocument(value);
  const members = withDefaults(schema, value);
  const inner: FieldInfo = { ...info, schema };
  return (
    <Stack gap="sm" data-field={info.path}>
      {isNullable && (
        <Switch
          label={info.label}
          description={help(schema)}
          checked={isThere}
          disabled={isReadOnly}
          onChange={({ currentTarget: { checked } }) =>
            onChange(checked ? withDefaults(schema, {}) : null)
          }
        />
      )}
      {!isNullable && schema.form?.title !== undefined && (
        <SubHead title={info.label} text={help(schema)} />
      )}
      {error !== null && <Input.Error role="alert">{error}</Input.Error>}
      {isThere &&
        sectionsOf(schema, members).map((section) => (
          <InnerSection key={section.group.id} path={info.path} section={section}>
            <Members
              info={inner}
              names={section.names}
              value={isDocument(value) ? value : {}}
              onMember={(name, next) =>
                onChange(withMember(isDocument(value) ? value : {}, name, next))
              }
            />
          </InnerSection>
        ))}
    </Stack>
  );
}

interface InnerSectionProps {
  readonly path: string;
  readonly section: FieldSection;
  readonly children: ReactNode;
}

function InnerSection({ path, section: { group, names }, children }: InnerSectionProps) {
  const { errors } = useFormFacts();
  const { title, text, folded } = group;
  if (folded === true)
    return (
      <FoldedSection
        title={title}
        text={text}
        fields={names.map((name) => `${path}.${name}`)}
        errors={errors}
      >
        {children}
      </FoldedSection>
    );
  return (
    <Stack gap="sm">
      {title !== "" && <SubHead title={title} text={text} />}
      {children}
    </Stack>
  );
}

interface MembersProps {
  readonly info: FieldInfo;
  readonly names: readonly string[];
  readonly value: Document;
  readonly onMember: (name: string, value: unknown) => void;
}

function Members({ info, names, value, onMember }: MembersProps) {
  const { overrides } = useFormFacts();
  return (
    <Grid>
      {names.map((name) => {
        const member = memberInfo(info, name);
        const isHalf = isNarrow(member.schema) && overrides[member.path] === undefined;
        return (
          <Grid.Col key={name} span={isHalf ? { base: 12, sm: 6 } : 12}>
            <InnerField
              info={member}
              value={value[name]}
              onChange={(next) => onMember(name, next)}
            />
          </Grid.Col>
        );
      })}
    </Grid>
  );
}

/** Whether two of them fit side by side. */
const isNarrow = (schema: JsonSchema): boolean =>
  ["text", "number", "choice", "secret", "service", "consumer", "reference"].includes(
    shapeOf(schema).shape,
  ) && schema.form?.input !== "radios";
