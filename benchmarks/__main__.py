# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks COMMAND``, from the project's root. Beside these: ``python -m benchmarks.caches``, ``.compile_time``, ``.memory``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
ENGINES = "roundel,ort,openvino,inductor,eager,tvm"


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@app.command()
def models(
    models: str = typer.Option("all", help="Names, separated by commas."),
    threads: str = typer.Option("1,2", help="Numbers of threads."),
    engines: str = typer.Option(ENGINES, help="Engines; those not installed are skipped."),
    batch: str = typer.Option("1", help="Batch sizes."),
    budget: float = typer.Option(20.0, help="Seconds of timing for each model and number of threads."),
) -> None:
    """Whole models: latency of each engine, in turns in one process per model and number of threads."""
    from .latency import run_all
    from .models import cases

    run_all(cases(_list(models), [int(b) for b in _list(batch)]), [int(t) for t in _list(threads)], _list(engines), budget)


@app.command(hidden=True)
def one(model: str, batch: int = 1, threads: int = 1, engines: str = ENGINES, budget: float = 20.0, length: int = typer.Option(None)) -> None:
    """One model in this process; the result as JSON in the last line."""
    from .latency import run_case
    from .models import Case

    print(json.dumps(run_case(Case(model, batch, length), threads, _list(engines), budget)))


@app.command()
def kernels(
    threads: int = typer.Option(1, help="Number of threads."),
    engines: str = typer.Option("roundel,ort,openvino,eager", help="Engines; oneDNN with packed weights is added for convolutions."),
    only: str = typer.Option("", help="Only layers with this in their family or name."),
    budget: float = typer.Option(1.5, help="Seconds of timing for each layer."),
) -> None:
    """Single layers: matrix products, every convolution of three models, softmax, layer norm."""
    from .kernels import run_kernels

    run_kernels(_list(engines), threads, budget, only)


@app.command()
def operators(
    threads: int = typer.Option(1, help="Number of threads."),
    engines: str = typer.Option("roundel,ort,eager", help="Engines."),
    only: str = typer.Option("", help="Only operators with this in their name."),
    budget: float = typer.Option(0.2, help="Seconds of timing for each operator."),
    checks: bool = typer.Option(False, "--checks", help="What checking indices costs instead: gathers and scatters checked and unchecked."),
) -> None:
    """Common operators one at a time: elementwise, reductions, normalisations, moves, indices, searches, recurrences, trees."""
    if checks:
        from .index_checks import run_index_checks

        run_index_checks(threads, only)
        return
    from .operators import run_operators

    run_operators(_list(engines), threads, budget, only)


@app.command()
def programs(
    count: int = typer.Option(100, help="Random candidates of each program; those that were tried before count."),
    seed: int = typer.Option(0, help="Of the candidates."),
    only: str = typer.Option("", help="Only programs with one of these in their name, separated by commas."),
    folder: str = typer.Option("", help="Where the fastest candidates are kept; default: a folder of the cache. The next command goes on from there."),
    search_for: float = typer.Option(1e9, help="Seconds of searching, beside which other processes may run; 0: only time."),
    time_for: float = typer.Option(1e9, help="Seconds of timing; 0: only search."),
    more: bool = typer.Option(False, "--more", help="The programs beyond the first 24 too."),
) -> None:
    """Tensor programs that no rule was written for, untuned, against the best of random schedules; resumable."""
    from roundel.ir import options

    from .program_race import run_programs

    run_programs(count, seed, only, Path(folder) if folder else options.cache_dir() / "random-programs", search_for, time_for, more)


@app.command()
def accuracy(
    models: str = typer.Option("all", help="Names or kinds of the zoo's models, separated by semicolons."),
    threads: int = typer.Option(1, help="Number of threads."),
    limit: float = typer.Option(8.0, help="The largest error allowed, in PyTorch's own."),
    strict: bool = typer.Option(False, "--strict", help="Compile with accuracy strict instead of default."),
) -> None:
    """Errors of Roundel and of PyTorch in single precision against PyTorch in double precision: architectures of many kinds at their usual sizes."""
    from .accuracy import run_accuracy
    from .zoo import chosen

    beyond = run_accuracy(chosen(models), limit, threads, **({"accuracy": "strict"} if strict else {}))
    if beyond:
        raise typer.Exit(1)


@app.command()
def zoo(
    models: str = typer.Option("all", help="Names or kinds of the zoo's models, separated by semicolons."),
    threads: int = typer.Option(1, help="Number of threads."),
    engines: str = typer.Option("roundel,ort,openvino,eager", help="Engines; roundel compiles the PyTorch module, roundel-onnx the file."),
    seconds: float = typer.Option(10.0, help="Seconds of timing for each model."),
    limit: float = typer.Option(1200.0, help="Seconds for everything about one model."),
    again: bool = typer.Option(False, "--again", help="Measure also what was measured before."),
) -> None:
    """Architectures of many kinds at their usual sizes: compiled, compared with float64, timed in turns with other engines; resumable."""
    from .zoo import chosen
    from .zoo_race import run_zoo, table

    typer.echo(table(run_zoo(chosen(models), threads, _list(engines), seconds, limit, again)))


@app.command(hidden=True)
def zoo_one(model: str, threads: int = 1, engines: str = "roundel,ort,openvino,eager", seconds: float = 10.0) -> None:
    """One architecture of the zoo in this process; the result as JSON in the last line."""
    from .zoo_race import run_one

    print(json.dumps(run_one(model, threads, _list(engines), seconds)))


@app.command()
def roofline(
    models: str = typer.Option("all", help="Names, separated by commas."),
    threads: int = typer.Option(1, help="Number of threads."),
    seconds: float = typer.Option(2.0, help="For how long to measure each model."),
) -> None:
    """Every kernel of the models against the roofline; prints those that lose most."""
    from .models import cases
    from .roofline import run_roofline

    run_roofline([c for c in cases(_list(models), [1]) if c.length in (None, 128)], threads, seconds)


@app.command(name="random")
def random_layers(
    seed: int = typer.Option(0, help="Draws the layers."),
    count: int = typer.Option(50, help="How many."),
    candidates: int = typer.Option(200, help="Most decisions measured for each."),
    only: str = typer.Option("", help="Only layers with one of these, separated by commas, in their family or name."),
    folder: str = typer.Option("", help="Where compiled candidates wait for the race; default: a folder of the cache."),
    compile_for: float = typer.Option(1e9, help="Seconds of compiling; the next command goes on from there. Other processes may share the machine meanwhile."),
    race_for: float = typer.Option(1e9, help="Seconds of timing, which needs the machine for itself; 0: only compile."),
    machine: str = typer.Option("own", help="This machine as it is (own), or as if it had AVX2 only (avx2) or SSE only (sse)."),
    threads: int = typer.Option(1, help="Number of threads."),
    keep: bool = typer.Option(False, "--keep", help="Leave what is compiled in the folder, for another number of threads."),
    beside: str = typer.Option("", help="A folder of the same layers' candidates that another version compiled: they are timed too."),
) -> None:
    """Random layers: what the target's model chooses against the best of the candidates of all sketches that are measured."""
    from roundel.ir import options

    from .race import run_random

    run_random(seed, count, candidates, only, Path(folder) if folder else options.cache_dir() / "random-layers", compile_for, race_for, machine,
               threads, keep, Path(beside) if beside else None)


@app.command()
def algorithms(
    conditions: str = typer.Option("own,beside,avx2,sse", help="Under what: this machine as measured, beside a process that reads memory, AVX2, SSE."),
    drawn: int = typer.Option(6, help="How many drawn layers beside those of ResNet and VGG."),
    seed: int = typer.Option(0, help="Draws them."),
    only: str = typer.Option("", help="Only layers with this in their family or name."),
    seconds: float = typer.Option(2.0, help="Seconds of timing for each layer."),
    steps: str = typer.Option("measure,compile,time", help="Measuring and timing need the machine for themselves, compiling does not; none: only print."),
    folder: str = typer.Option("", help="Where rates, compiled layers and times are kept for the next command; default: a folder of the cache."),
    threads: int = typer.Option(1, help="Number of threads."),
) -> None:
    """Convolutions of 3 x 3: the algorithm that is chosen against the one that is measured to be the fastest."""
    from roundel.ir import options

    from .algorithms import RESNET, VGG, run_algorithms
    from .algorithms import drawn as others

    layers = [x for x in (*RESNET, *VGG, *others(seed, drawn)) if only in f"{x.family} {x.name}"]
    run_algorithms(_list(conditions), layers, seconds, Path(folder) if folder else options.cache_dir() / "algorithms", _list(steps), threads)


@app.command()
def products(
    rows: str = typer.Option("1,2,5,17,64,128,300", help="Numbers of rows."),
    inner: int = typer.Option(768, help="Columns of the data, and of the result of each second product."),
    columns: int = typer.Option(3072, help="Columns of the result of each first product."),
    threads: int = typer.Option(1, help="Number of threads."),
    engines: str = typer.Option("ort,openvino,eager", help="Other engines."),
    budget: float = typer.Option(3.0, help="Seconds of timing for each number of rows."),
) -> None:
    """Products with constant matrices: a file for any number of rows against files for one number each, and against other engines."""
    from .products import run_products

    run_products([int(m) for m in _list(rows)], inner, columns, threads, _list(engines), budget)


@app.command()
def paths(
    models: str = typer.Option("all", help="Names, separated by commas; bad: the machine described badly."),
    threads: int = typer.Option(1, help="Number of threads."),
    libraries: str = typer.Option("onednn,openblas", help="The libraries that take part."),
    compare_for: float = typer.Option(60.0, help="Seconds of comparing the parts of each model."),
    time_for: float = typer.Option(15.0, help="Seconds of timing each model."),
    limit: float = typer.Option(600.0, help="Seconds for everything about one model."),
    again: bool = typer.Option(False, "--again", help="Measure also what was measured before."),
) -> None:
    """Libraries beside generated code: the best of all paths against generated code alone; resumable. Fails where it is slower."""
    from .paths import chosen, holds, line, run_paths

    found = run_paths(chosen(_list(models)), threads, libraries, compare_for, time_for, limit, again)
    typer.echo("\n".join(map(line, found)))
    if not all(map(holds, found)):
        raise typer.Exit(1)


@app.command(hidden=True)
def paths_one(
    model: str, condition: str = "own", threads: int = 1, libraries: str = "", compare_for: float = 60.0, time_for: float = 15.0,
    length: int = typer.Option(None),
) -> None:
    """One model by all paths in this process; the result as JSON in the last line."""
    from .models import Case
    from .paths import run_one

    print(json.dumps(run_one(Case(model, 1, length), condition, threads, libraries, compare_for, time_for)))


@app.command()
def tuning_rate(
    models: str = typer.Option("resnet18,mobilenetv2,bert128", help="Names, separated by commas."),
    count: int = typer.Option(2, help="Kernels of each: those that take longest, up to 2 ms."),
    trials: int = typer.Option(96, help="Candidates of each."),
    threads: int = typer.Option(1, help="Number of threads."),
) -> None:
    """How many candidates `rd.tune` measures in a second, what each costs in CPU time, and when the first gain came."""
    from .tuning import run_rate

    run_rate(_list(models), count, trials, threads)


@app.command()
def rules_off(
    models: str = typer.Option("resnet18,mobilenetv2,bert128", help="Names, separated by commas."),
    count: int = typer.Option(4, help="Kernels of each, from those that take longest to those that take least."),
    trials: int = typer.Option(64, help="Candidates of each."),
    seed: int = typer.Option(0, help="Of the searches."),
) -> None:
    """Kernels tuned without the hand-written rules (space generic) against what these choose untuned."""
    from .searches import run_rules_off

    run_rules_off(_list(models), count, trials, seed)


@app.command()
def efficiency(
    programs: str = typer.Option("max_plus,mttkrp,correlation_volume", help="Tensor programs of `programs`, separated by commas."),
    models: str = typer.Option("", help="Models whose kernels take part too."),
    count: int = typer.Option(2, help="Kernels of each model."),
    random: int = typer.Option(300, help="Candidates that are drawn at random."),
    trials: int = typer.Option(96, help="Candidates of each search."),
    seeds: int = typer.Option(1, help="How often each searches."),
) -> None:
    """After how many measurements the searches reach what many random candidates reach: with what is learned of decisions, of sketches, by the model alone."""
    from .searches import run_efficiency

    run_efficiency(_list(programs), _list(models), count, random, trials, seeds)


@app.command("graph-choices")
def graph_choices(
    count: int = typer.Option(30, help="Random small graphs."),
    seed: int = typer.Option(0, help="Of the graphs."),
    seconds: float = typer.Option(1e9, help="Seconds after which no other graph is begun."),
) -> None:
    """Algorithms, layouts, boundaries and packing of small graphs: a quarter of the models measured, against all."""
    from .graph_choices import run_graph_choices

    run_graph_choices(count, seed, seconds)


@app.command()
def workers(
    size: int = typer.Option(256, help="Of a matrix product."),
    candidates: int = typer.Option(64, help="Candidates that are measured."),
    rounds: int = typer.Option(9, help="How often."),
) -> None:
    """What two workers take for measuring the same candidates, relative to one."""
    from .tuning import run_workers

    run_workers(size, candidates, rounds)


@app.command()
def pretrain(
    folder: str = typer.Option("", help="Where measurements are kept; default: a folder of the cache. The next command goes on from there."),
    models: str = typer.Option("resnet18,mobilenetv2,bert128", help="Models whose kernels are measured."),
    layers: int = typer.Option(60, help="Random layers that are measured too."),
    candidates: int = typer.Option(32, help="Of each kernel."),
    seconds: float = typer.Option(1e9, help="For how long to measure; 0: only train."),
    write: bool = typer.Option(False, "--write", help="Write the model that ships."),
) -> None:
    """Measure candidates of many kernels, train the model of the tuner that ships, and validate it on kernels that it has not seen."""
    from roundel.ir import options

    from .pretrain import default_output, run_pretrain

    place = Path(folder) if folder else options.cache_dir() / "pretrain"
    run_pretrain(place, _list(models), layers, candidates, seconds, default_output() if write else None)


@app.command()
def metaschedule(
    peer: str = typer.Option("python", help="The Python of an environment with apache-tvm, xgboost, psutil, cloudpickle and tornado."),
    trials: int = typer.Option(32, help="Candidates that each measures for a program."),
    seed: int = typer.Option(0, help="Of both searches."),
    only: str = typer.Option("", help="Only programs with one of these in their name, separated by commas."),
    folder: str = typer.Option("", help="Where winners are kept; default: a folder of the cache. What is there is not tuned again."),
    tune_for: float = typer.Option(1e9, help="Seconds after which no other program is tuned; 0: only time."),
    time_for: float = typer.Option(1e9, help="Seconds after which no other program is timed, which needs the machine for itself; 0: only tune."),
    more: bool = typer.Option(False, "--more", help="The programs beyond the first 24 too."),
) -> None:
    """Programs that no rule was written for, tuned here and by TVM's MetaSchedule with as many trials; resumable."""
    from roundel.ir import options

    from .metaschedule import run_metaschedule

    run_metaschedule(peer, trials, seed, only, Path(folder) if folder else options.cache_dir() / "metaschedule", tune_for, time_for, more)


@app.command()
def report(
    charts: str = typer.Option("docs/charts", help="Folder for the charts."),
    into: str = typer.Option("", help="Put the tables between the marks `results: begin` and `results: end` of this file; default: print them."),
) -> None:
    """Tables in Markdown and charts (SVG, PNG) of what is under ``benchmarks/results``."""
    from .charts import draw_all
    from .report import insert
    from .report import report as tables

    if into:
        insert(Path(into), tables())
    else:
        typer.echo(tables())
    for path in draw_all(Path(charts)):
        typer.echo(path, err=True)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
