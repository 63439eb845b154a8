import {
  getArgumentValues,
  getVariableValues,
  GraphQLError,
  locatedError,
  OperationTypeNode,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLLeafType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from "graphql";
import type { Context } from "../resolvers/use-cases.ts";
import type { OperationVariables } from "./limits/operation-size.ts";
import {
  createPlanOperation,
  type Plan,
  type PlannedField,
  type Shape,
  type VariableValues,
} from "./plan-operation.ts";

/**
 * Runs one operation. A result without `data` means that the variables are invalid and nothing ran.
 * `event`: what a subscription's field received.
 */
export type Run = (
  context: Context,
  variables: OperationVariables,
  event?: unknown,
) => ExecutionResult | Promise<ExecutionResult>;

export interface RunnableOperation {
  readonly run: Run;
  /** Plans the operation for all its runs. Returns how many fields are kept. */
  readonly plan: () => number;
}

/** As many as graphql-js reports. */
const MAX_VARIABLE_ERRORS = 50;

/**
 * Runs operations of valid documents, with the answers of graphql-js's `execute`. That
 * would find an operation's fields and arguments again in each run; here the operation is planned
 * once. Makes no code. A resolver may return promises, but no other thenable.
 */
export function createPrepareRun(schema: GraphQLSchema) {
  const planOperation = createPlanOperation(schema);

  return (document: DocumentNode, operation: OperationDefinitionNode): RunnableOperation => {
    const isMutation = operation.operation === OperationTypeNode.MUTATION;
    const definitions = operation.variableDefinitions ?? [];
    /** Undefined until the first run. Without fields if they depend on directives. */
    let plan: { readonly fields?: Plan; readonly size: number } | undefined;

    function planOnce() {
      if (plan) return plan;
      const { fields, size, hasDirectives } = planOperation(document, operation);
      return (plan = hasDirectives ? { size: 0 } : { fields, size });
    }

    const planFor = (variables: VariableValues): Plan =>
      planOnce().fields ?? planOperation(document, operation, variables).fields;

    return {
      plan: () => planOnce().size,
      run(context, variables, event) {
        const options = { maxErrors: MAX_VARIABLE_ERRORS, hideSuggestions: true };
        const { coerced, errors } = getVariableValues(
          schema,
          definitions,
          variables ?? {},
          options,
        );
        if (!coerced) return { errors };
        const running = new RunningOperation(context, coerced);
        return isMutation ? running.runInOrder(planFor) : running.runAtOnce(planFor, event);
      },
    };
  };
}

/** An object of the answer. It inherits no members, because any name can name a field. */
class Answer {
  [responseName: string]: unknown;
  static {
    Object.setPrototypeOf(Answer.prototype, null);
  }
}

type Key = string | number;
/** An object or a list of the answer. */
type Container = Record<Key, unknown>;

/** The position of an object or a list in the answer. */
class Place {
  readonly container: Container;
  readonly key: Key;
  readonly isNonNull: boolean;
  /** The position of `container`; undefined for the root object. */
  readonly parent: Place | undefined;
  /** Whether an error has removed the object or list from the answer. */
  isRemoved = false;

  constructor(container: Container, key: Key, isNonNull: boolean, parent: Place | undefined) {
    this.container = container;
    this.key = key;
    this.isNonNull = isNonNull;
    this.parent = parent;
  }
}

/** Fills the answer in place: the value of a promise is undefined until the promise settles. */
class RunningOperation {
  readonly #context: Context;
  readonly #variables: VariableValues;
  readonly #errors: GraphQLError[] = [];
  readonly #data = new Answer();
  /** Whether an error has made the whole answer null. */
  #isRootRemoved = false;
  /** How many promises have not settled. */
  #pending = 0;
  #onIdle: (() => void) | undefined;

  constructor(context: Context, variables: VariableValues) {
    this.#context = context;
    this.#variables = variables;
  }

  /** Runs the fields of a query, or of an event. */
  runAtOnce(
    planFor: (variables: VariableValues) => Plan,
    event: unknown,
  ): ExecutionResult | Promise<ExecutionResult> {
    try {
      this.#fill(this.#data, planFor(this.#variables), event, undefined);
    } catch (error) {
      this.#removeRoot(error as GraphQLError);
    }
    return this.#pending === 0 ? this.#result() : this.#idle().then(() => this.#result());
  }

  /** Runs the fields of a mutation, one after the other. */
  async runInOrder(planFor: (variables: VariableValues) => Plan): Promise<ExecutionResult> {
    try {
      for (const field of planFor(this.#variables)) {
        this.#fill(this.#data, [field], undefined, undefined);
        if (this.#pending > 0) await this.#idle();
        if (this.#isRootRemoved) break;
      }
    } catch (error) {
      this.#removeRoot(error as GraphQLError);
      if (this.#pending > 0) await this.#idle();
    }
    return this.#result();
  }

  #idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #result(): ExecutionResult {
    const errors = this.#errors;
    const data = this.#isRootRemoved ? null : this.#data;
    return errors.length === 0 ? { data } : { errors, data };
  }

  /** Throws the error of a field that must not be null. */
  #fill(object: Container, fields: Plan, source: unknown, place: Place | undefined): void {
    for (const field of fields) {
      const { responseName, definition } = field;
      const { shape } = definition;
      try {
        const args =
          field.args ?? getArgumentValues(definition.field, field.nodes[0], this.#variables);
        const value: unknown = definition.resolve(source, args, this.#context, definition.info);
        object[responseName] = this.#receive(value, shape, field, object, responseName, place);
      } catch (error) {
        object[responseName] = this.#fail(error, shape, field, responseName, place);
      }
    }
  }

  /** Returns a completed value; undefined for a promise, whose value is set later. */
  #receive(
    value: unknown,
    shape: Shape,
    field: PlannedField,
    container: Container,
    key: Key,
    place: Place | undefined,
  ): unknown {
    if (!(value instanceof Promise))
      return this.#complete(value, shape, field, container, key, place);
    this.#pending++;
    value.then(
      (result) => {
        try {
          container[key] = this.#complete(result, shape, field, container, key, place);
        } catch (error) {
          this.#failLater(error, shape, field, container, key, place);
        }
        this.#settle();
      },
      (error: unknown) => {
        this.#failLater(error, shape, field, container, key, place);
        this.#settle();
      },
    );
    return undefined;
  }

  #settle(): void {
    if (--this.#pending === 0) this.#onIdle?.();
  }

  /** Throws if the value, or a value in it that must not be null, cannot be completed. */
  #complete(
    value: unknown,
    shape: Shape,
    field: PlannedField,
    container: Container,
    key: Key,
    place: Place | undefined,
  ): unknown {
    if (value instanceof Error) throw value;
    if (value === null || value === undefined) {
      if (shape.isNonNull)
        throw new Error(`Cannot return null for non-nullable field ${nameOf(field)}.`);
      return null;
    }
    const { leaf, items } = shape;
    if (leaf) return serialize(leaf, value);
    const own = new Place(container, key, shape.isNonNull, place);
    try {
      if (items) return this.#completeItems(value, items, field, own);
      const answer = new Answer();
      this.#fill(answer, field.fields, value, own);
      return answer;
    } catch (error) {
      own.isRemoved = true;
      throw error;
    }
  }

  #completeItems(value: unknown, shape: Shape, field: PlannedField, place: Place): unknown[] {
    if (!isIterableObject(value))
      throw new GraphQLError(
        `Expected Iterable, but did not find one for field "${nameOf(field)}".`,
      );
    const list: unknown[] = [];
    const container = list as unknown as Container;
    for (const item of value) {
      const key = list.length;
      try {
        list.push(this.#receive(item, shape, field, container, key, place));
      } catch (error) {
        list.push(this.#fail(error, shape, field, key, place));
      }
    }
    return list;
  }

  /** Adds the error of a value, and returns null. Throws it if the value must not be null. */
  #fail(
    cause: unknown,
    { isNonNull }: Shape,
    { nodes }: PlannedField,
    key: Key,
    place: Place | undefined,
  ): null {
    const error = locatedError(cause, nodes, pathOf(key, place));
    if (isNonNull) throw error;
    this.#add(error, place);
    return null;
  }

  /** Adds the error of a promise's value, which makes null what must not contain null. */
  #failLater(
    cause: unknown,
    { isNonNull }: Shape,
    { nodes }: PlannedField,
    container: Container,
    key: Key,
    place: Place | undefined,
  ): void {
    const error = locatedError(cause, nodes, pathOf(key, place));
    if (!isNonNull) {
      container[key] = null;
      this.#add(error, place);
      return;
    }
    if (this.#isRemoved(place)) return;
    let lostPlace = place;
    while (lostPlace?.isNonNull) {
      lostPlace.isRemoved = true;
      lostPlace = lostPlace.parent;
    }
    if (lostPlace) {
      lostPlace.isRemoved = true;
      lostPlace.container[lostPlace.key] = null;
      this.#errors.push(error);
    } else this.#removeRoot(error);
  }

  #removeRoot(error: GraphQLError): void {
    if (this.#isRootRemoved) return;
    this.#isRootRemoved = true;
    this.#errors.push(error);
  }

  /** Leaves out errors of what is no longer part of the answer. */
  #add(error: GraphQLError, place: Place | undefined): void {
    if (!this.#isRemoved(place)) this.#errors.push(error);
  }

  #isRemoved(place: Place | undefined): boolean {
    for (let each = place; each; each = each.parent) if (each.isRemoved) return true;
    return this.#isRootRemoved;
  }
}

function serialize(type: GraphQLLeafType, value: unknown): unknown {
  const serialized: unknown = type.serialize(value);
  if (serialized === null || serialized === undefined)
    throw new Error(`Expected ${type.name}.serialize not to return null`);
  return serialized;
}

const isIterableObject = (value: unknown): value is Iterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.iterator in value;

const nameOf = ({ definition: { parent, field } }: PlannedField) => `${parent.name}.${field.name}`;

function pathOf(key: Key, place: Place | undefined): Key[] {
  const path = [key];
  for (let each = place; each; each = each.parent) path.push(each.key);
  return path.reverse();
}
