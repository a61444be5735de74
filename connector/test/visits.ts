type Method = (this: unknown, ...given: unknown[]) => unknown;

const ITERATORS = [[].values(), new Map().values(), new Set().values()].map((each) => Object.getPrototypeOf(each));
const LOOPS = ["every", "filter", "find", "findIndex", "flatMap", "forEach", "map", "some", "sort"];

/** @returns how many items of arrays, maps and sets all loops went over during the work: its cost, however fast the machine is. */
export async function visitsIn(work: () => Promise<void>): Promise<number> {
  let visits = 0;
  const counting = (method: Method): Method =>
    function (...given) {
      visits += 1;
      return method.apply(this, given);
    };
  const restores = [
    ...ITERATORS.map((iterator) => replace(iterator, "next", counting)),
    ...LOOPS.map((name) =>
      replace(Array.prototype, name, (loop) => {
        return function (each, ...rest) {
          return loop.call(this, each && counting(each as Method), ...rest);
        };
      }),
    ),
  ];
  try {
    await work();
  } finally {
    for (const restore of restores) restore();
  }
  return visits;
}

/** @returns restores the method. */
function replace(owner: object, name: string, by: (method: Method) => Method): () => void {
  const methods = owner as Record<string, Method>;
  const method = methods[name] as Method;
  methods[name] = by(method);
  return () => {
    methods[name] = method;
  };
}
