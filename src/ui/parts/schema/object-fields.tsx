// The fields of an object in a schema form: main fields first, the rest folded, groups as sections; knows no plugin.
import { Badge, Box, Button, Fieldset, Group, Menu, Stack, Switch } from "@mantine/core";
import { IconChevronDown, IconChevronRight, IconPlus } from "@tabler/icons-react";
import { useId, useState } from "react";
import { isDocument, isSame } from "../../api/merge-patch.ts";
import { RemoveButton } from "../fields.tsx";
import { HelpText } from "../page-layout.tsx";
import { PageObject } from "./page-fields.tsx";
import { startOf } from "./collection-fields.tsx";
import {
  type FieldProps,
  help,
  type FieldInfo,
  type FieldInputProps,
  useErrorAt,
  useErrorCount,
  useFormFacts,
  InnerField,
  memberInfo,
} from "./field-frame.tsx";
import { isNeeded, type JsonSchema, shapeOf, toLabel } from "./shape.ts";
import { withMember } from "./values.ts";

/** An object with a heading, unless it has one already. */
export function ObjectField(props: FieldProps) {
  const { info, value, onChange, isBare = false } = props;
  const { shape, schema, isNullable } = shapeOf(info.schema);
  const error = useErrorAt(info.path);
  const { isReadOnly, isPage } = useFormFacts();
  const isThere = !isNullable || isDocument(value);
  const inner = { ...info, schema };
  const fields =
    shape === "picked" ? (
      <PickedFields info={inner} value={value} onChange={onChange} />
    ) : (
      <Members info={inner} value={value} onChange={onChange} />
    );
  if (isPage) return <PageObject {...props} />;
  if (isBare) return fields;
  return (
    <Fieldset legend={info.label} data-field={info.path} miw={0}>
      <Stack gap="sm">
        {schema.description !== undefined && <HelpText>{help(schema)}</HelpText>}
        {isNullable && (
          <Switch
            label={`Use ${info.label}`}
            checked={isThere}
            disabled={isReadOnly}
            onChange={({ currentTarget: { checked } }) => onChange(checked ? {} : null)}
          />
        )}
        {error !== null && (
          <Box c="var(--mantine-color-error)" fz="sm" role="alert">
            {error}
          </Box>
        )}
        {isThere && fields}
      </Stack>
    </Fieldset>
  );
}

/** Up to this many fields are shown without folding. */
const MAX_UNFOLDED = 5;

function Members({ info, value, onChange }: FieldInputProps) {
  const members = isDocument(value) ? value : {};
  const { properties = {} } = info.schema;
  const names = Object.keys(properties);
  // Fields set when the form opened; a field must not move while it is edited.
  const [main] = useState(() => mainOf(info, members));
  const isShort = (name: string) => shapeOf(properties[name] ?? {}).shape !== "object";
  const isFew = names.length <= MAX_UNFOLDED;
  const first = names.filter((name) => main.has(name) || (isFew && isShort(name)));
  const rest = names.filter((name) => !first.includes(name));
  const draw = (name: string) => (
    <InnerField
      key={name}
      info={memberInfo(info, name)}
      value={members[name]}
      onChange={(next) => onChange(withMember(members, name, next))}
    />
  );
  return (
    <Stack gap="md">
      {first.map(draw)}
      {rest.length > 0 && (
        <More
          paths={rest.map((name) => memberInfo(info, name).path)}
          changed={rest.filter((name) => isChanged(properties[name], members[name])).length}
        >
          {rest.map(draw)}
        </More>
      )}
    </Stack>
  );
}

const isChanged = (schema: JsonSchema | undefined, value: unknown): boolean =>
  value !== undefined && !isSame(value, schema?.default) && !isPlain(schema, value);

/** The API returns groups with all defaults filled in. */
function isPlain(schema: JsonSchema | undefined, value: unknown): boolean {
  if (!isDocument(value) || schema?.properties === undefined) return false;
  return Object.entries(value).every(
    ([name, member]) => !isChanged(schema.properties?.[name], member),
  );
}

/** Required fields, fields of the example, and set fields. */
function mainOf({ schema, example }: FieldInfo, members: Readonly<Record<string, unknown>>) {
  const { properties = {} } = schema;
  const shown = isDocument(example) ? example : {};
  const isSecret = (name: string) => shapeOf(properties[name] ?? {}).shape === "secret";
  const main = Object.keys(properties).filter(
    (name) =>
      isNeeded(schema, name) ||
      isSecret(name) ||
      name in shown ||
      isChanged(properties[name], members[name]),
  );
  return new Set(main.length > 0 ? main : Object.keys(properties).slice(0, MAX_UNFOLDED));
}

interface MoreProps {
  readonly paths: readonly string[];
  readonly changed: number;
  readonly children: React.ReactNode;
}

/** Folded until opened, or until it contains an error. */
function More({ paths, changed, children }: MoreProps) {
  const [isAsked, setAsked] = useState(false);
  const id = useId();
  const isOpen = useErrorCount(paths) > 0 || isAsked;
  const Icon = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <Box>
      <Button
        variant="subtle"
        size="compact-sm"
        px={4}
        aria-expanded={isOpen}
        aria-controls={id}
        leftSection={<Icon size={16} />}
        onClick={() => setAsked(!isOpen)}
        rightSection={
          changed > 0 && (
            <Badge size="xs" variant="light" tt="none">
              {changed} set
            </Badge>
          )
        }
      >
        {isOpen
          ? "Fewer settings"
          : `${paths.length} more ${paths.length === 1 ? "setting" : "settings"}`}
      </Button>
      {isOpen && (
        <Stack id={id} gap="md" mt="sm">
          {children}
        </Stack>
      )}
    </Box>
  );
}

/** An object with few used members: each is added on demand. */
function PickedFields({ info, value, onChange }: FieldInputProps) {
  const { isReadOnly } = useFormFacts();
  const [added, setAdded] = useState<readonly string[]>([]);
  const members = isDocument(value) ? value : {};
  const { properties = {} } = info.schema;
  const isThere = (name: string) => members[name] !== undefined || added.includes(name);
  const shown = Object.keys(properties).filter(isThere);
  const left = Object.keys(properties).filter((name) => !isThere(name));
  const add = (name: string) => {
    setAdded([...added, name]);
    const schema = properties[name] ?? {};
    const { shape } = shapeOf(schema);
    const hasDefaults = shape === "object" && schema.required !== undefined;
    if (hasDefaults || shape === "flag") onChange({ ...members, [name]: startOf(schema) });
  };
  const remove = (name: string) => {
    setAdded(added.filter((other) => other !== name));
    onChange(withMember(members, name, undefined));
  };
  return (
    <Stack gap="sm">
      {shown.map((name) => (
        <Group key={name} gap="xs" align="flex-start" wrap="nowrap">
          <Box style={{ flex: 1, minWidth: 0 }}>
            <InnerField
              info={memberInfo(info, name)}
              value={members[name]}
              onChange={(next) => {
                if (next === undefined) setAdded([...added, name]);
                onChange(withMember(members, name, next));
              }}
            />
          </Box>
          {!isReadOnly && (
            <RemoveButton label={`Remove ${toLabel(name)}`} onClick={() => remove(name)} />
          )}
        </Group>
      ))}
      {!isReadOnly && left.length > 0 && (
        <AddMenu names={left} isFirst={shown.length === 0} of={info} onAdd={add} />
      )}
    </Stack>
  );
}

interface AddMenuProps {
  readonly names: readonly string[];
  readonly isFirst: boolean;
  readonly of: FieldInfo;
  readonly onAdd: (name: string) => void;
}

function AddMenu({ names, isFirst, of, onAdd }: AddMenuProps) {
  const isCondition =
    of.schema["x-kind"] === "condition" || of.name === "not" || of.name === "when";
  const word = isCondition ? "condition" : "setting";
  return (
    <Menu position="bottom-start" withinPortal>
      <Menu.Target>
        <Button
          size="xs"
          variant="default"
          leftSection={<IconPlus size={14} />}
          style={{ alignSelf: "flex-start" }}
        >
          {isFirst ? `Add a ${word}` : `Add another ${word}`}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
        {names.map((name) => (
          <Menu.Item key={name} onClick={() => onAdd(name)}>
            {toLabel(name)}
            <HelpText>{of.schema.properties?.[name]?.description?.split(":")[0]}</HelpText>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
