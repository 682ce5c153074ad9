import ast,sys,io,tokenize
from pathlib import Path
def code_lines(path):
    src=path.read_text(); tree=ast.parse(src)
    doc=set()
    for n in ast.walk(tree):
        if isinstance(n,(ast.Module,ast.ClassDef,ast.FunctionDef,ast.AsyncFunctionDef,)):
            pass
        body=getattr(n,'body',None)
        if isinstance(body,list):
            for s in body:
                if isinstance(s,ast.Expr) and isinstance(s.value,ast.Constant) and isinstance(s.value.value,str):
                    doc.update(range(s.lineno,s.end_lineno+1))
    lines=set()
    for t in tokenize.generate_tokens(io.StringIO(src).readline):
        if t.type in (tokenize.COMMENT,tokenize.NL,tokenize.NEWLINE,tokenize.INDENT,tokenize.DEDENT,tokenize.ENDMARKER): continue
        lines.update(range(t.start[0],t.end[0]+1))
    return len(lines-doc)
if __name__=='__main__':
    tot=0; by={}
    files=sorted(Path('langchain_groundedness').rglob('*.py'))
    for f in files:
        n=code_lines(f); tot+=n
        k=f.parts[1] if len(f.parts)>2 else '(top)'
        by.setdefault(k,[0,0]); by[k][0]+=1; by[k][1]+=n
    for k,(a,b) in by.items(): print(f'{k:15} {a:4} {b:6}')
    print(len(files),tot)
